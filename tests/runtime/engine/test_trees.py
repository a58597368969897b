"""The root of a tree, as far as a process remembers it."""

import pytest

from holdfast.runtime.engine import engine as module


def test_only_so_many_roots_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server meets any number of children: the oldest are forgotten first."""
    monkeypatch.setattr(module, "ROOTS_MAX", 2)
    trees = module.Trees()
    for child in "abc":
        trees.note_root(child, f"root of {child}")

    assert [trees.root(child) for child in "abc"] == [None, "root of b", "root of c"]

"""The built-in set as a whole: what it is, and what it costs in each request."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.provider.request.size import estimate
from holdfast.tools import standard
from holdfast.tools.builtin.change import Locks
from holdfast.tools.standard import standard_tools
from tests.tools.fake_context import FakeContext

NOTHING: Any = None
LOOKING = {"glob", "grep", "list", "todowrite", "todoread", "question", "skill"}


def costs() -> dict[str, int]:
    """About how many tokens each definition has."""
    registry = standard_tools(NOTHING, SystemClock(), NOTHING, NOTHING, NOTHING)
    tools = [found.tool for name in sorted(registry.names()) if (found := registry.current(name))]
    return {
        tool.name: estimate(
            json.dumps({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
        )
        for tool in tools
    }


def test_the_definitions_leave_room_for_the_work() -> None:
    """At most 3,500 tokens for all, `bash` to come; 1,600 for those that look and tell."""
    found = costs()
    assert set(found) >= LOOKING
    assert sum(found.values()) <= 3_500, found
    assert sum(found[name] for name in LOOKING) <= 1_600, found


def test_what_a_crash_cut_off_may_be_run_again() -> None:
    """None of them changes anything twice."""
    registry = standard_tools(NOTHING, SystemClock(), NOTHING, NOTHING, NOTHING)
    found = {name: registry.current(name) for name in LOOKING}
    assert {name for name, each in found.items() if each is None or not each.tool.repeatable} == set()
    assert registry.current("invalid") is None


async def test_the_tools_that_change_files_share_their_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write and an edit of one file in one process wait for one another."""
    used: list[Locks] = []

    class Noted(Locks):
        @asynccontextmanager
        async def of(self, *paths: Path) -> AsyncIterator[None]:
            used.append(self)
            async with super().of(*paths):
                yield

    async def no_checks(session: str) -> tuple[()]:
        return ()

    monkeypatch.setattr(standard, "Locks", Noted)
    registry = standard_tools(NOTHING, SystemClock(), NOTHING, NOTHING, no_checks)
    context = FakeContext(tmp_path.resolve())
    path = str(tmp_path.resolve() / "a")
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-two\n+three\n*** End Patch"
    for name, input in (
        ("write", {"filePath": path, "content": "one\n"}),
        ("edit", {"filePath": path, "oldString": "one", "newString": "two"}),
        ("apply_patch", {"patchText": patch}),
    ):
        found = registry.current(name)
        assert found is not None
        await found.tool.run(context, input)
    assert ((tmp_path / "a").read_text(), len(used), len(set(map(id, used)))) == ("three\n", 3, 1)

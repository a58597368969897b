"""What follows a change: the checks of the session."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.config.checks import Check
from holdfast.errors import StoreBusy
from holdfast.location.filesystem import Filesystem
from holdfast.location.write_path import digest
from holdfast.tools.builtin import change
from holdfast.tools.builtin.checked import checking
from holdfast.tools.checks import run
from tests.tools.fake_context import FakeContext


async def test_a_rewrite_is_an_edit_of_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients learn of it, and the session knows what the file holds from then on."""
    path = tmp_path.resolve() / "a.txt"
    path.write_bytes(b"one\n")
    context: Any = FakeContext(path.parent)
    filesystem = Filesystem(path.parent, path.parent)
    made = await change.change(filesystem, filesystem.resolve("a.txt"), None, b"one\n")

    async def rewriting(*_: object) -> list[object]:
        path.write_bytes(b"ONE\n")
        return []

    async def checks_of(session: str) -> tuple[Check, ...]:
        return (Check(name="upper", command=("upper",)),)

    monkeypatch.setattr(run, "run", rewriting)
    checked = await checking(checks_of)(context, filesystem, [made])
    assert [each.after for each in checked.changes] == [b"ONE\n"]
    assert (context.known, context.edits) == ({path: digest(b"ONE\n")}, [path])


async def test_a_change_whose_checks_are_not_known_is_made(tmp_path: Path) -> None:
    """The store is away: the file is written, and a call that failed would deny that."""
    context: Any = FakeContext(tmp_path)
    filesystem = Filesystem(tmp_path, tmp_path)
    made = await change.change(filesystem, filesystem.resolve("a.txt"), None, b"one\n")

    async def checks_of(session: str) -> tuple[Check, ...]:
        raise StoreBusy("the store is away")

    checked = await checking(checks_of)(context, filesystem, [made])
    said = "\n\nNo check was run: which there are could not be read (the store is away)."
    assert (checked.changes, checked.text) == ((made,), said)

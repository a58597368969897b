"""`holdfast session revert` and `unrevert`."""

import json

import pytest

from holdfast.app import Holdfast
from holdfast.testing.clock import FakeClock
from tests.cli.conftest import Shell
from tests.cli.terminal import Terminal
from tests.sessions.undo_world import UndoWorld

pytestmark = [pytest.mark.needs("git"), pytest.mark.ci]


@pytest.fixture
def session(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session in which the agent has changed two files."""
    monkeypatch.setenv("HOME", str(shell.home))
    (shell.folder / "a").write_text("one\n")

    async def work(hf: Holdfast) -> str:
        world = await UndoWorld(hf, FakeClock(), shell.folder).begin()
        await world.prompt("please")
        await world.agent({"a": b"two\n", "new": b"1\n"})
        return world.session

    return str(shell.make(work))


def test_revert_and_unrevert(shell: Shell, session: str) -> None:
    """A preview changes nothing; then the files are put back, and come back; `show` tells of it."""
    looked = shell("session", "revert", session, "--preview")
    assert looked.code == 0
    assert looked.out == (
        "restored    a (+1 -1)\n--- a\n+++ a\n@@ -1 +1 @@\n-two\n+one\n"
        "deleted     new (+0 -1)\n--- new\n+++ new\n@@ -1 +0,0 @@\n-1\n"
    )
    assert (shell.folder / "a").read_text() == "two\n"

    done = shell("session", "revert", session, "--yes", "--format", "json")
    shown = done.json()
    assert (done.code, shown["session"], shown["done"]) == (0, session, True)
    assert [(each["path"], each["outcome"]) for each in shown["files"]] == [
        ("a", "restored"),
        ("new", "deleted"),
    ]
    assert sorted(path.name for path in shell.folder.iterdir()) == ["a"]
    show = shell("session", "show", session).out
    assert ("please" in show, "  reverted   from msg_" in show) == (False, True)

    back = shell("session", "unrevert", session)
    assert (back.code, back.out) == (0, "restored    a (+1 -1)\nrestored    new (+1 -0)\n")
    assert (shell.folder / "a").read_text() == "two\n"
    assert "please" in shell("session", "show", session).out


def test_a_conflict_has_an_exit_code_of_its_own(shell: Shell, session: str) -> None:
    """One line that names the file and its lines; for programs they stand in the error."""
    (shell.folder / "a").write_text("mine\n")
    assert shell.fails("session", "revert", session, "--yes", code=4) == (
        "nothing was changed: a line 1: the same lines have been changed since"
    )
    done = shell("session", "revert", session, "--yes", "--format", "json")
    assert (done.code, json.loads(done.err)["data"]["files"]) == (
        4,
        [{"path": "a", "reason": "the same lines have been changed since", "lines": [[1, 1]]}],
    )
    assert shell("session", "revert", session, "--preview").code == 4


def test_it_asks(shell: Shell, session: str) -> None:
    """On a terminal, after a preview; without one it says what to add."""
    assert "give --yes or --preview" in shell.fails("session", "revert", session, code=2)
    for answer, code, text in (("n", 1, "two\n"), ("y", 0, "one\n")):
        terminal = Terminal(shell, "session", "revert", session)
        terminal.sees("[y/N]")
        terminal.press(f"{answer}\n")
        assert (terminal.ends()[0], (shell.folder / "a").read_text()) == (code, text)

"""`holdfast session diff`."""

import subprocess

import pytest

from holdfast.app import Holdfast
from holdfast.testing.clock import FakeClock
from tests.cli.conftest import Shell
from tests.cli.terminal import Terminal
from tests.sessions.undo_world import UndoWorld

pytestmark = [pytest.mark.needs("git"), pytest.mark.ci]


@pytest.fixture
def session(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session in which the agent has changed a file, and made one that would drive a terminal."""
    monkeypatch.setenv("HOME", str(shell.home))
    (shell.folder / "a").write_text("one\n")

    async def work(hf: Holdfast) -> str:
        world = await UndoWorld(hf, FakeClock(), shell.folder).begin()
        await world.prompt("please")
        await world.agent({"a": b"two\n", "new": b"\x1b]0;owned\x07\tx\n"})
        return world.session

    return str(shell.make(work))


def test_what_was_changed(shell: Shell, session: str) -> None:
    """As git has it: what is printed can be applied; the counts; and values for programs."""
    done = shell("session", "diff", session)
    (shell.folder / "a").write_text("one\n")
    (shell.folder / "new").unlink()
    subprocess.run(["git", "apply", "-"], cwd=shell.folder, input=done.out.encode(), check=True)
    assert (shell.folder / "a").read_text() == "two\n"
    assert (shell.folder / "new").read_bytes() == b"\x1b]0;owned\x07\tx\n"

    stat = shell("session", "diff", session, "--stat")
    assert stat.out == " a   |     2 +-\n new |     1 +\n 2 files changed, 2 lines added, 1 removed\n"
    shown = shell("session", "diff", session, "--format", "json").json()
    changed = [(each["file"], each["status"]) for each in shown["diffs"]]
    assert changed == [("a", "modified"), ("new", "added")]
    assert "is not kept" in shell.fails("session", "diff", session, "--from", "0" * 40)
    assert "needs a start" in shell.fails("session", "diff", session, "--to", "0" * 40)


def test_a_terminal_is_not_driven_by_a_file(shell: Shell, session: str) -> None:
    """There colours are ours, and signs that control it are shown as such."""
    _code, shown = Terminal(shell, "--no-pager", "session", "diff", session).ends()

    assert "+\ufffd]0;owned\ufffd" in shown
    assert "\x1b]0;owned" not in shown
    assert "\x1b[32m+two" in shown

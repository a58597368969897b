"""`holdfast session resume` and `abort`: what a person sees of a session that was left unfinished."""

import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import MockProvider, Reply, Say, Trouble
from tests.cli.conftest import Done, Shell, configured, ended, said
from tests.stories.loops import parked
from tests.stories.tools import Deed
from tests.stories.world import World

HALF = Trouble("stall", after=4, reply=Reply((Say("Half of an answer that never ends."),)))
SEEN = "Half of an answer that n"


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


async def saved(shell: Shell, mock: MockProvider) -> str:
    """The id of the only session, once the open text is in the store."""
    with anyio.fail_after(40):
        await mock.stalled.wait()
        (session,) = (await said(shell, "session", "list", "--format", "json")).json()
        while SEEN not in (await said(shell, "session", "show", session["id"])).out:
            pass  # Within a second.
    return str(session["id"])


async def killed(shell: Shell, mock: MockProvider) -> str:
    """A session whose runner was killed in the middle of an answer that the person had seen."""
    mock.play(HALF)
    process = await anyio.to_thread.run_sync(lambda: shell.start("run", "go"))
    session = await saved(shell, mock)
    process.send_signal(signal.SIGKILL)
    assert (await ended(process)).out == SEEN
    return session


@pytest.mark.ci
async def test_only_what_is_new_is_shown(shell: Shell, mock: MockProvider) -> None:
    """The beginning stood on the screen before the kill, and is stored; then there is nothing left to do."""
    session = await killed(shell, mock)
    mock.play(Reply((Say("ever comes to an end."),)))

    resumed = await said(shell, "session", "resume", session)
    again = await said(shell, "session", "resume", session)

    assert resumed == Done(0, "ever comes to an end.\n", f"Going on with {session}.\n")
    assert SEEN in str(mock.requests[-1].json["messages"])
    assert (again.code, again.out) == (0, "")
    assert again.err.splitlines()[1:] == [
        f"{session} has nothing left to do. `holdfast run --session {session} …` sends it a prompt."
    ]


@pytest.mark.ci
async def test_another_prompt_shows_only_its_answer(shell: Shell, mock: MockProvider) -> None:
    """What recovery closes on the way is no news either."""
    await killed(shell, mock)
    mock.play(Reply((Say("Then once more."),)))

    assert await said(shell, "run", "--continue", "again") == Done(0, "Then once more.\n", "")


@pytest.mark.ci
async def test_a_session_that_another_process_runs_is_shown_from_the_beginning(
    shell: Shell, mock: MockProvider
) -> None:
    """Both see its end; an abort from a third ends it for both."""
    mock.play(HALF)
    runner = await anyio.to_thread.run_sync(lambda: shell.start("run", "go"))
    session = await saved(shell, mock)
    watcher = await anyio.to_thread.run_sync(lambda: shell.start("session", "resume", session))
    assert watcher.stdout is not None
    seen = await anyio.to_thread.run_sync(watcher.stdout.read, len(SEEN))
    aborted = await said(shell, "session", "abort", session)
    ran, watched = await ended(runner), await ended(watcher)

    assert seen.decode() == SEEN
    assert aborted == Done(0, "", f"{session} was interrupted.\n")
    assert ran == Done(1, f"{SEEN}\n", "holdfast: The work was interrupted.\n")
    assert (watched.code, watched.out) == (1, "\n")
    assert watched.err == (
        f"Another process runs {session}; this shows what it does.\nholdfast: The work was interrupted.\n"
    )
    idle = await said(shell, "session", "abort", session)
    assert idle == Done(0, "", f"{session} does nothing at the moment.\n")


@pytest.mark.ci
async def test_a_session_that_waits_for_an_answer_says_so_and_can_be_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not somebody runs it, it is not done: its question is closed with it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    world = World(tmp_path, home)
    session, _ = await parked(world, Deed(ask=False))
    shell = Shell(home, world.project, world.store)

    process = await anyio.to_thread.run_sync(lambda: shell.start("session", "resume", session))
    assert process.stderr is not None
    told = [await anyio.to_thread.run_sync(process.stderr.readline) for _ in range(2)]
    process.send_signal(signal.SIGKILL)
    await ended(process)
    aborted = await said(shell, "session", "abort", session)
    again = await said(shell, "session", "abort", session)

    assert [line.decode() for line in told] == [
        f"Going on with {session}.\n",
        f"It waits for an answer (doom_loop: act); `holdfast session abort {session}` ends the wait.\n",
    ]
    assert aborted == Done(0, "", f"{session} was interrupted.\n")
    assert again == Done(0, "", f"{session} does nothing at the moment.\n")

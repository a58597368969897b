"""How `holdfast run` ends before its time: Ctrl-C once and more than once, and readers that go away."""

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say, Trouble
from tests.cli.conftest import Done, Shell, configured, ended, said

HALF = Trouble("stall", after=4, reply=Reply((Say("Half of an answer that never ends."),)))


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


async def half_an_answer(shell: Shell, mock: MockProvider) -> "subprocess.Popen[bytes]":
    """A command whose model has fallen silent in the middle of a sentence that the person sees."""
    mock.play(HALF)
    process = await anyio.to_thread.run_sync(lambda: shell.start("run", "go"))
    with anyio.fail_after(60):
        await mock.stalled.wait()
        assert process.stdout is not None
        assert await anyio.to_thread.run_sync(process.stdout.read, 4) == b"Half"
    return process


async def goes_on(shell: Shell, mock: MockProvider) -> None:
    """The session is at rest, and takes another prompt."""
    listed = await said(shell, "session", "list")
    assert len(listed.out.splitlines()) == 2
    assert "busy" not in listed.out
    mock.play(Reply((Say("And the rest."),)))
    assert await said(shell, "run", "--continue", "go on") == Done(0, "And the rest.\n", "")
    assert (await said(shell, "doctor")).code == 0


@pytest.mark.ci
async def test_ctrl_c_interrupts_cleanly_and_the_session_can_be_resumed(
    shell: Shell, mock: MockProvider
) -> None:
    """What was said is kept; the command says how to go on."""
    process = await half_an_answer(shell, mock)
    process.send_signal(signal.SIGINT)
    done = await ended(process)

    assert done.code == 130
    assert "run --session" in done.err
    await goes_on(shell, mock)


@pytest.mark.ci
async def test_ctrl_c_again_and_again_is_no_traceback(shell: Shell, mock: MockProvider) -> None:
    """However far the first has come by then: exit code 130, the session in order, and the way to go on."""
    process = await half_an_answer(shell, mock)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    first = await anyio.to_thread.run_sync(process.stderr.readline)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        await anyio.lowlevel.checkpoint()
    done = await ended(process)

    assert first == b"Interrupting; once more ends at once.\n"
    assert done.code == 130
    (last,) = done.err.splitlines()
    assert last.startswith(("Ended at once. `holdfast session resume ses_", "Interrupted. `holdfast run"))
    await goes_on(shell, mock)


def python(program: str) -> Done:
    """What becomes of a small program."""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return Done(ran.returncode, ran.stdout, ran.stderr)


def test_the_second_ctrl_c_ends_the_process_and_says_how_to_go_on() -> None:
    """Whatever the process waits for."""
    done = python(
        "import asyncio, os, signal\n"
        "from holdfast.cli.run.interrupts import Interrupts\n"
        "async def main():\n"
        "    interrupts = Interrupts()\n"
        "    interrupts.session = 'ses_x'\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    await interrupts.asked.wait()\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )

    told = "Interrupting; once more ends at once.\nEnded at once. `holdfast session resume ses_x` goes on.\n"
    assert done == Done(130, "", told)


@pytest.mark.parametrize("moment", ["prepare", "run"])
def test_ctrl_c_before_the_command_is_one_line(moment: str) -> None:
    """Python is still loading then."""
    done = python(
        "import os, signal, holdfast.cli.main as entry\n"
        f"entry.{moment} = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "entry.main()\n"
    )

    assert done == Done(130, "", "holdfast: interrupted\n")


def test_ctrl_c_after_the_command_does_not_change_how_it_ended() -> None:
    """Everything is done and told by then."""
    done = python(
        "import atexit, os, signal, sys, holdfast.cli.main as entry\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['holdfast', 'session', 'nonsense']\n"
        "entry.main()\n"
    )

    assert done.code == 2
    assert len(done.err.splitlines()) == 1


@pytest.mark.ci
async def test_a_reader_that_goes_away_or_is_full_is_no_bug_of_ours(shell: Shell, mock: MockProvider) -> None:
    """The work ends when nobody reads it, and on a full disk with one line; the session is at rest then."""
    for form in ("default", "json"):
        mock.play(Reply((Say("Hello."),)), Reply((Say("Hello."),)))
        run = f"holdfast run --format {form} hi"
        left = await anyio.to_thread.run_sync(shell.sh, f"({run}; echo $? >&2) | true")
        full = await anyio.to_thread.run_sync(shell.sh, f"{run} >/dev/full")

        *told, code = left.err.splitlines()
        assert (left.out, code) == ("", "130")
        assert ["Interrupted. `holdfast run" in line for line in told] == [True]
        full_disk = "standard output: No space left on device"
        as_json = f'{{"name": "ContextError", "data": {{"message": "{full_disk}"}}}}\n'
        assert full == Done(1, "", f"holdfast: {full_disk}\n" if form == "default" else as_json)
    assert "busy" not in (await said(shell, "session", "list")).out


@pytest.mark.ci
async def test_settings_that_break_between_two_steps_fail_the_command(
    shell: Shell, mock: MockProvider
) -> None:
    """The tool has run and the next request cannot be made: exit code 1, and the reason is stored."""
    (shell.folder / "a.txt").write_text("content of a\n")
    mock.play(Reply((Say("Words that take their time."), Call("read", {"filePath": "a.txt"})), pace_ms=200))
    process = await anyio.to_thread.run_sync(lambda: shell.start("run", "go"))
    assert process.stdout is not None
    assert await anyio.to_thread.run_sync(process.stdout.read, 5) == b"Words"
    settings = shell.home / ".config/holdfast/holdfast.json"
    good = settings.read_text()
    settings.write_text('{"model": ')
    done = await ended(process)
    settings.write_text(good)

    assert done.code == 1
    assert "• read a.txt\n" in done.err
    assert "not valid JSON" in done.err
    mock.play(Reply((Say("And on."),)))
    assert await said(shell, "run", "--continue", "go on") == Done(0, "And on.\n", "")
    assert "content of a" in str(mock.requests[-1].json)

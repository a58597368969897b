"""The log as an operator meets it: a file of the user's, `--verbose`, `HOLDFAST_LOG`, `logLevel`."""

import re
import stat
from pathlib import Path

import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say, Trouble
from tests.cli.conftest import Shell, configured, said, settings

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARN|ERROR) \d+ ([a-z]+) ([a-z_.]+)( .*)?"
)


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


def log_of(shell: Shell) -> Path:
    """Where the log is."""
    return shell.home / ".local/state/holdfast/holdfast.log"


def names(text: str) -> list[str]:
    """The events of a log, every line of which must have the form."""
    matches = [LINE.fullmatch(line) for line in text.splitlines()]
    assert None not in matches, text
    return [match[3] for match in matches if match is not None]


TURN = ["claim.taken", "turn.begin", "turn.end", "claim.released"]


@pytest.mark.ci
async def test_run_leaves_a_log_that_holds_no_content(shell: Shell, mock: MockProvider) -> None:
    """One line an event, for the user alone; no prompt, no answer, no tool output, no key, no header."""
    (shell.folder / "a.txt").write_text("the file's secret words\n")
    mock.play(Reply((Say("Looking."), Call("read", {"filePath": "a.txt"}))), Reply((Say("It is tuna."),)))

    ran = await said(shell, "run", "Tell me about the salmon")

    assert (ran.code, ran.err) == (0, "• read a.txt\n")
    text = log_of(shell).read_text()
    assert names(text) == ["claim.taken", *TURN[1:3] * 2, "claim.released"]
    for private in ("salmon", "tuna", "secret", "Looking", "a.txt", "Bearer", "Authorization"):
        assert private not in text
    assert [stat.S_IMODE(path.stat().st_mode) for path in (log_of(shell).parent, log_of(shell))] == [
        0o700,
        0o600,
    ]


@pytest.mark.ci
async def test_commands_that_only_read_open_no_log(shell: Shell, mock: MockProvider) -> None:
    """Neither the file nor its folder is made, at any level."""
    session = await anyio.to_thread.run_sync(shell.conversation)
    shell.environment["HOLDFAST_LOG"] = "debug"
    session_commands = [f"session {verb} {session}" for verb in ("show", "children")]
    for command in ("--version", "session list", *session_commands, "config", "models", "agents", "doctor"):
        ran = await said(shell, *command.split())
        assert ran.code == 0, (command, ran)

    assert not log_of(shell).parent.parent.exists()


@pytest.mark.ci
async def test_verbose_prints_the_log_before_and_after_the_command(shell: Shell, mock: MockProvider) -> None:
    """To standard error, with details; the answer on standard output is as ever."""
    mock.play(Reply((Say("One."),)), Reply((Say("Two."),)))

    before = await said(shell, "--verbose", "run", "hello")
    after = await said(shell, "run", "hello", "--verbose")
    read = await said(shell, "session", "list", "--verbose")

    details = ["command.begin", "owner.registered", *TURN, "owner.retired", "command.end"]
    assert (before.code, before.out, after.out) == (0, "One.\n", "Two.\n")
    assert [name for name in names(before.err) if name != "message"] == details
    assert [name for name in names(after.err) if name != "message"] == details
    assert names(read.err) == ["command.begin", "command.end"]
    assert "hello" not in before.err + after.err


@pytest.mark.ci
async def test_the_level_comes_from_the_environment_or_the_settings(shell: Shell, mock: MockProvider) -> None:
    """A trusted project's setting is over the user's own, and the variable over both; `off` makes no file; a
    level that is none is refused by name.
    """
    settings(shell, mock, logLevel="ERROR")
    mock.play(Reply((Say("Yes."),)))
    await said(shell, "run", "hello")
    assert not log_of(shell).exists()
    (shell.folder / "holdfast.json").write_text('{"logLevel": "WARN"}')
    await said(shell, "trust")
    mock.play(Trouble("auth"))
    await said(shell, "run", "hello")
    assert names(log_of(shell).read_text()) == ["turn.end"]
    log_of(shell).unlink()
    mock.play(Reply((Say("Yes."),)), Reply((Say("Yes."),)))
    shell.environment["HOLDFAST_LOG"] = "off"
    await said(shell, "run", "hello")
    assert not log_of(shell).exists()
    shell.environment["HOLDFAST_LOG"] = "debug"
    await said(shell, "run", "hello")
    assert names(log_of(shell).read_text()) == ["owner.registered", *TURN, "owner.retired"]
    shell.environment["HOLDFAST_LOG"] = "loud"
    assert shell.fails("run", "hello") == (
        "HOLDFAST_LOG must be debug, info, warn, error or off; change or unset it"
    )


@pytest.mark.ci
async def test_a_warning_is_printed_and_logged(shell: Shell, mock: MockProvider) -> None:
    """In words to the user, as an event in the log, each without a password."""
    address = "http://me:hunter2hunter2@127.0.0.1:9/house.md"
    settings(shell, mock, instructions=[address])
    mock.play(Reply((Say("Yes."),)))

    ran = await said(shell, "run", "hello")

    [warning] = [line for line in log_of(shell).read_text().splitlines() if " WARN " in line]
    assert ran.code == 0
    assert ran.err.startswith("instructions from http")
    assert ' holdfast message text="instructions from http' in warning
    assert "hunter2" not in ran.err + warning


@pytest.mark.ci
async def test_a_state_folder_that_cannot_be_used_fails_no_turn(shell: Shell, mock: MockProvider) -> None:
    """A file in its place, as a read-only or full disk: the work goes on, and nothing is said."""
    mock.play(Reply((Say("Yes."),)))
    (shell.home / ".local").mkdir()
    (shell.home / ".local/state").write_text("")

    ran = await said(shell, "run", "hello")

    assert (ran.code, ran.out, ran.err) == (0, "Yes.\n", "")

"""`holdfast session shell`: a command of the user's own in a session's directory."""

from pathlib import Path

import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import MockProvider
from tests.cli.conftest import configured, said


@pytest.mark.ci
@pytest.mark.needs("bash")
async def test_a_command_of_the_user_s_own(tmp_path: Path, mock: MockProvider) -> None:
    """Its output and its exit code; what a terminal would obey is not printed; no model is asked."""
    shell = configured(tmp_path, mock)
    session = await anyio.to_thread.run_sync(shell.conversation)
    done = await said(shell, "session", "shell", session, r"printf 'a\033[1mb\n'; exit 3")
    assert (done.code, done.out[:1], "\x1b" in done.out, "(Exit code 3.)" in done.out) == (
        3,
        "a",
        False,
        True,
    )
    shown = await said(shell, "session", "shell", session, "pwd", "--format", "json")
    assert (shown.code, shown.json()["exit"], shown.json()["output"]) == (0, 0, str(shell.folder))
    wrong = await said(shell, "session", "shell", "ses_none", "ls")
    assert (wrong.code, "no session is called" in wrong.err) == (1, True)
    assert mock.requests == []

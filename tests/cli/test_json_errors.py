"""Errors under `--format json`: one object, the last line of standard error, with the usual exit code."""

import json
from pathlib import Path

import pytest

from holdfast.cli.complaint import Complaint, line_of, wants_json
from holdfast.testing.mock_provider import MockProvider, Reply, Say, Trouble
from tests.cli.conftest import Done, Shell, configured, said


def error_of(done: Done) -> tuple[int, str, str]:
    """The exit code, and the name and message of the error; nothing is on standard output."""
    body = json.loads(done.err.splitlines()[-1])
    assert list(body) == ["name", "data"]
    assert done.out == ""
    return done.code, body["name"], body["data"]["message"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["session", "list", "--format", "json"], True),
        (["--format=json"], True),
        (["run", "--format", "default", "json"], False),
        (["run", "--", "--format", "json"], False),
        (["session", "search", "json", "--format"], False),
        ([], False),
    ],
)
def test_json_is_asked_for_by_the_arguments(arguments: list[str], expected: bool) -> None:
    """As they were typed, since parsing them may be what fails."""
    assert wants_json(arguments) is expected


def test_a_complaint_is_one_line_in_both_forms() -> None:
    """Nothing in it steers a terminal; JSON is ASCII, whatever the locale."""
    complaint = Complaint("NotFoundError", "no\nsuch \x1b[2J thing …")

    assert line_of(complaint, as_json=False) == "holdfast: no such \\x1b[2J thing …\n"
    assert line_of(complaint, as_json=True) == (
        '{"name": "NotFoundError", "data": {"message": "no such \\u001b[2J thing \\u2026"}}\n'
    )


@pytest.mark.ci
def test_what_fails_is_named(shell: Shell) -> None:
    """Errors of ours, of usage, of the system; each with the code that people get."""
    shell.conversation()

    def failed(*arguments: str) -> tuple[int, str, str]:
        return error_of(shell(*arguments, "--format", "json"))

    assert failed("session", "show", "nothing")[:2] == (1, "NotFoundError")
    assert failed("session", "show")[:2] == (2, "UsageError")
    assert failed("session", "list", "--limt", "3")[:2] == (2, "UsageError")
    assert failed("session")[:2] == (2, "UsageError")
    assert failed("session", "import", "/nowhere/at/all.json")[:2] == (1, "NotFoundError")
    assert failed("--store", "nonsense://x", "session", "list")[:2] == (1, "InvalidInputError")
    assert failed("session", "delete", "ses_")[:2] == (1, "NotFoundError")


@pytest.mark.ci
async def test_a_run_that_fails_ends_with_its_error(tmp_path: Path, mock: MockProvider) -> None:
    """By the name of the record's error; the events before it are on standard output."""
    shell = configured(tmp_path, mock)
    mock.play(Trouble("auth"), Reply((Say("It is about"),), reason="length"))

    refused = await said(shell, "run", "hello", "--format", "json")
    cut = await said(shell, "run", "hello", "--format", "json")
    unknown = await said(shell, "run", "hello", "-m", "acme/nothing", "--format", "json")

    assert refused.code == 1
    assert json.loads(refused.err)["name"] == "ProviderAuthError"
    assert (cut.code, json.loads(cut.err)["name"]) == (1, "MessageOutputLengthError")
    assert error_of(unknown)[:2] == (1, "NotFoundError")


@pytest.mark.ci
async def test_what_is_done_is_answered_as_json(tmp_path: Path, mock: MockProvider) -> None:
    """Commands that act say what they did, also to programs."""
    shell = configured(tmp_path, mock)
    mock.play(Reply((Say("Yes."),)))
    await said(shell, "run", "hello")
    [session] = (await said(shell, "session", "list", "--format", "json")).json()
    id, file = session["id"], str(tmp_path / "out.json")

    async def answer(*arguments: str, text: str = "") -> object:
        done = await said(shell, *arguments, "--format", "json", text=text)
        assert (done.code, done.err) == (0, ""), done
        return done.json()

    assert await answer("session", "abort", id) == {"session": id, "interrupted": False}
    assert await answer("session", "compact", id) == {"session": id, "compacted": False}
    assert await answer("session", "export", id, "-o", file) == {
        "file": file,
        "bytes": Path(file).stat().st_size,
        "missing": [],
    }
    key_file = str(shell.home / ".local/share/holdfast/credentials.json")
    login = ("providers", "login", "openai", "--key-stdin")
    assert await answer(*login, text="sk-abcdefghijklmnop") == {"provider": "openai", "file": key_file}
    assert await answer("providers", "logout", "openai") == {"provider": "openai", "remains": None}
    listed = await answer("models", "install")
    assert isinstance(listed, list)
    assert all(each["installed"] is False for each in listed)

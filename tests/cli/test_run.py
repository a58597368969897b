"""`holdfast run`: a real process, a real provider over HTTP, and what a person sees."""

import json
from pathlib import Path

import pytest

from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say, Trouble
from tests.cli.conftest import Shell, configured, said, settings


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


@pytest.mark.ci
async def test_the_answer_is_printed_and_the_session_goes_on(shell: Shell, mock: MockProvider) -> None:
    """A second command goes on with the same session; standard input is joined to the message."""
    mock.play(Reply((Say("Hello there."),)), Reply((Say("Still here."),)))

    first = await said(shell, "run", "Say", "hello", text="to this\n")
    second = await said(shell, "run", "--continue", "again")

    assert (first.code, first.out, first.err) == (0, "Hello there.\n", "")
    assert (second.code, second.out) == (0, "Still here.\n")
    last = mock.requests[-1].json["messages"]
    texts = [str(message["content"]) for message in last]
    assert any("Say hello\n\nto this" in text or "Say hello\\n\\nto this" in text for text in texts)
    assert any("Hello there." in text for text in texts)
    sessions = (await said(shell, "session", "list", "--format", "json")).json()
    assert len(sessions) == 1


@pytest.mark.ci
async def test_a_call_is_a_line_and_json_is_a_line_an_event(shell: Shell, mock: MockProvider) -> None:
    """The tool reads a real file of the project."""
    (shell.folder / "a.txt").write_text("content of a\n")
    call = Call("read", {"filePath": "a.txt"})
    mock.play(Reply((Say("Looking."), call)), Reply((Say("It is content of a."),)))
    mock.play(Reply((call,)), Reply((Say("Again."),)))

    plain = await said(shell, "run", "What is in a.txt?")
    events = await said(shell, "run", "--format", "json", "What is in a.txt?")

    assert plain.out == "Looking.\nIt is content of a.\n"
    assert plain.err == "• read a.txt\n"
    assert "content of a" in json.dumps(mock.requests[1].json)
    types = [json.loads(line)["type"] for line in events.out.splitlines()]
    assert types[-1] == "session.idle"
    assert types.count("session.idle") == 1
    assert "message.part.updated" in types
    assert "sk-secret" not in plain.out + plain.err + events.out + events.err


@pytest.mark.ci
async def test_an_answer_that_was_cut_off_says_so_and_is_a_failure(shell: Shell, mock: MockProvider) -> None:
    """Half a sentence is no answer. `session show` says it too, with who answered and an unknown price."""
    mock.play(Reply((Say("It is about"),), reason="length"))

    cut = await said(shell, "run", "What is it about?")
    session = (await said(shell, "session", "list", "--format", "json")).json()[0]["id"]
    shown = await said(shell, "session", "show", session)

    assert (cut.code, cut.out) == (1, "It is about\n")
    assert cut.err == (
        f"✗ cut off at the output limit (5 tokens); `holdfast run --session {session} …` goes on\n"
    )
    assert shown.out.splitlines()[-3:] == [
        "It is about",
        "✗ cut off at the output limit (5 tokens)",
        "acme/m · 10 tokens in · 5 out · ?",
    ]
    assert "  cost       ?" in shown.out.splitlines()


@pytest.mark.ci
async def test_failures_and_denials_have_exit_codes_of_their_own(shell: Shell, mock: MockProvider) -> None:
    """One clear line on standard error each; no key is shown, though the server repeats it."""
    mock.play(Trouble("auth"))
    failed = await said(shell, "run", "hello")
    settings(shell, mock, permission={"read": {"*": "allow", "*a.txt": "deny"}})
    mock.play(Reply((Call("read", {"filePath": "a.txt"}),)), Reply((Say("I may not."),)))
    denied = await said(shell, "run", "look")

    assert (failed.code, failed.out) == (1, "")
    assert "sk-secret" not in failed.err
    assert len(failed.err.splitlines()) == 1
    assert (denied.code, denied.out) == (3, "I may not.\n")
    assert denied.err.startswith("✗ read denied: The rules deny read")
    for arguments, code in [
        (("run", "-m", "acme/none", "x"), 1),
        (("run", "--agent", "nobody", "x"), 1),
        (("run", "--session", "ses_none", "x"), 1),
        (("run", "--session", "a", "--continue", "x"), 2),
    ]:
        wrong = await said(shell, *arguments)
        assert (wrong.code, wrong.out, len(wrong.err.splitlines())) == (code, "", 1), wrong

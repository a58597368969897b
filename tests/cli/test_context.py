"""`holdfast session context` and `session compact`: what the model is sent, and how it is made shorter."""

from pathlib import Path

import pytest

from holdfast.testing.mock_provider import MockProvider, Reply, Say, Trouble
from tests.cli.conftest import Shell, configured, said
from tests.stories.tools import STANDARD


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


@pytest.mark.ci
async def test_every_block_is_shown_before_and_after_a_compaction(shell: Shell, mock: MockProvider) -> None:
    """In send order, with sources and sizes; afterwards the summary stands in the place of the beginning."""
    (shell.folder / "AGENTS.md").write_text("Answer in one word.")
    mock.play(Reply((Say("One. " * 300),)), Reply((Say("Two."),)))
    await said(shell, "run", "first wish")
    await said(shell, "run", "--continue", "second wish")
    (session,) = [each["id"] for each in (await said(shell, "session", "list", "--format", "json")).json()]

    table = await said(shell, "session", "context", session)
    text = await said(shell, "session", "context", session, "--format", "text")
    json = (await said(shell, "session", "context", session, "--format", "json")).json()

    assert (table.code, table.err) == (0, "")
    assert [block["source"] for block in json["blocks"]] == [
        *(f"tool {name}" for name in STANDARD),
        "instructions",
        "baseline",
        "person",
        "model",
        "person",
        "model",
    ]
    assert "Answer in one word." in text.out
    assert "begun for: first" in table.out
    assert json["moves"] == []

    idle = await said(shell, "session", "compact", session)
    assert (idle.code, len(mock.requests)) == (0, 2)
    assert "under every threshold" in idle.err

    mock.play(Reply((Say("They wished twice."),)))
    done = await said(shell, "session", "compact", session, "--force")
    assert (done.code, done.err) == (0, "")
    assert "They wished twice." in done.out
    after = (await said(shell, "session", "context", session, "--format", "json")).json()
    assert "They wished twice." in str(after["blocks"])

    empty = await said(shell, "session", "compact", session, "--force")
    assert (empty.code, empty.out, len(empty.err.splitlines())) == (1, "", 1)
    assert "nothing to compact" in empty.err

    mock.play(Reply((Say("Three. " * 300),)), Trouble("auth"))
    await said(shell, "run", "--continue", "third wish")
    failed = await said(shell, "session", "compact", session, "--force")
    assert (failed.code, failed.out, len(failed.err.splitlines())) == (1, "", 1)


@pytest.mark.ci
async def test_what_has_nothing_to_show_says_so(shell: Shell, mock: MockProvider) -> None:
    """One line, no traceback."""
    wrong = await said(shell, "session", "context", "ses_none")
    assert (wrong.code, wrong.out, len(wrong.err.splitlines())) == (1, "", 1)
    wrong = await said(shell, "session", "compact", "ses_none")
    assert (wrong.code, wrong.out, len(wrong.err.splitlines())) == (1, "", 1)

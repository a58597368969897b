"""`holdfast run` given something that it cannot use: one clear line, and nothing left behind."""

import json
import os
from pathlib import Path

import anyio.to_thread
import pytest

import holdfast
from holdfast.cli.run.command import begun
from holdfast.errors import InvalidInput, NotFound
from holdfast.schema.session import Session
from holdfast.testing.mock_provider import MockProvider, Reply, Say
from holdfast.workspace.workspace import Workspace
from tests.cli.conftest import Done, Shell, configured, ended, said, settings
from tests.sessions.filling import ask


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


def stored(shell: Shell) -> bool:
    """Whether a store was made at all."""
    return Path(shell.store.removeprefix("sqlite://")).exists()


@pytest.mark.ci
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
async def test_a_stream_that_is_closed_is_empty(shell: Shell, mock: MockProvider, closed: str) -> None:
    """No traceback, and no file of ours is opened in its place."""
    mock.play(Reply((Say("Hello."),)))

    done = await anyio.to_thread.run_sync(shell.sh, f"holdfast run hi {closed}")

    assert done == Done(0, "" if ">&-" in closed.split() else "Hello.\n", "")


@pytest.mark.ci
async def test_what_is_no_text_is_refused(shell: Shell) -> None:
    """Wrong usage, before anything is made."""
    arguments = await said(shell, "run", os.fsdecode(b"caf\xe9"))
    given = await anyio.to_thread.run_sync(shell.sh, r"printf 'caf\351 \377' | holdfast run explain")
    unreadable = await anyio.to_thread.run_sync(shell.sh, "holdfast run hi 0>out")

    assert arguments == Done(2, "", "holdfast: the message is not UTF-8: 'caf\\udce9'\n")
    why = "standard input is not UTF-8 (byte 4 is 0xe9); convert it first, with iconv"
    assert given == Done(2, "", f"holdfast: {why}\n")
    assert unreadable == Done(1, "", "holdfast: standard input cannot be read: Bad file descriptor\n")
    assert not stored(shell)


@pytest.mark.ci
async def test_text_is_utf_8_whatever_the_locale(shell: Shell, mock: MockProvider) -> None:
    """Words and standard input alike; the mark that some editors put before a text is no part of it."""
    shell.environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    mock.play(Reply((Say("Hello."),)))

    script = r"printf '\357\273\277na\303\257ve' | holdfast run café"
    done = await anyio.to_thread.run_sync(shell.sh, script)

    assert done == Done(0, "Hello.\n", "")
    assert "café\n\nnaïve" in str(mock.requests[0].json["messages"][-1]["content"]).replace("\\n", "\n")


@pytest.mark.ci
async def test_an_input_that_stays_open_is_waited_for_and_said_so(shell: Shell, mock: MockProvider) -> None:
    """A person would not know why nothing happens."""
    mock.play(Reply((Say("Hello."),)))
    process = shell.start("run", "hi", stdin=-1)
    assert process.stderr is not None
    told = await anyio.to_thread.run_sync(process.stderr.readline)

    assert told == b"Waiting for the end of standard input; `</dev/null` gives none.\n"
    assert await ended(process) == Done(0, "Hello.\n", "")


@pytest.mark.ci
async def test_a_mistake_leaves_nothing_behind(shell: Shell, mock: MockProvider) -> None:
    """One line each; not even a store is made, and the next run is the first one."""
    for arguments, why in [
        (("-m", "m"), "'m' names no model; write provider/model"),
        (("-m", "none/m"), "no provider is called 'none'"),
        (("-m", "acme/none"), "acme has no model 'none'"),
        (("-m", "anthropic/claude-sonnet-4-5"), "anthropic cannot be used: it has no key; set ANTHROPIC_"),
        (("--agent", "nobody"), "there is no agent 'nobody'"),
        (("--agent", "explore"), "explore works only for other agents"),
        (("--variant", "high"), "acme/m has no variant 'high'"),
    ]:
        assert shell.fails("run", *arguments, "hi").startswith(why)
        assert not stored(shell)
    mock.play(Reply((Say("Hello."),)))
    assert await said(shell, "run", "hi") == Done(0, "Hello.\n", "")
    assert len((await said(shell, "session", "list", "--format", "json")).json()) == 1


async def test_a_session_that_takes_no_first_word_goes_again(tmp_path: Path) -> None:
    """Whatever the reason; once the prompt is admitted, the session stays."""

    def broken(session: Session) -> Workspace:
        raise InvalidInput("the settings were broken meanwhile")

    async with holdfast.open(f"sqlite://{tmp_path}/store.db", workspace=broken) as hf:
        first = await hf.sessions.create(directory=tmp_path)

        async def prompt() -> None:
            await hf.sessions.prompt(first.id, "hi")

        with pytest.raises(InvalidInput, match="broken meanwhile"):
            await begun(hf, first.id, prompt)
        with pytest.raises(NotFound):
            await hf.sessions.get(first.id)

    async with holdfast.open(f"sqlite://{tmp_path}/store.db") as hf:
        second = await hf.sessions.create(directory=tmp_path)

        async def admitted() -> None:
            await ask(hf, second.id, "hi")
            raise InvalidInput("but then")

        with pytest.raises(InvalidInput, match="but then"):
            await begun(hf, second.id, admitted)
        assert (await hf.sessions.get(second.id)).id == second.id


@pytest.mark.ci
async def test_a_session_that_is_not_there_is_told_before_a_missing_provider(shell: Shell) -> None:
    """One line, though nothing is configured; and nothing is made."""
    settings(shell, model=None)
    shell.environment = {"HOLDFAST_STORE": "", "XDG_DATA_HOME": str(shell.home / "data")}
    none = "no session is called 'nope': there are no sessions yet"

    assert shell.fails("run", "--session", "nope", "hi") == none
    assert shell.fails("session", "resume", "nope") == none
    assert shell.fails("session", "abort", "nope") == none
    assert shell.fails("run", "--continue", "hi") == (
        "no session of this project is there to go on with; without --continue a new one begins"
    )
    assert shell("run", "--session", "nope", "hi").err.count("\n") == 1
    assert not (shell.home / "data").exists()


@pytest.mark.ci
async def test_the_problem_of_a_provider_is_told_by_name(shell: Shell) -> None:
    """One that is configured, but not whole; and a model that was named gets no general advice."""
    path = shell.home / ".config/holdfast/holdfast.json"
    path.write_text(json.dumps({"provider": {"acme": {"npm": "@ai-sdk/openai-compatible"}}}))
    first, *rest = shell("run", "hi").err.splitlines()
    assert first == "acme cannot be used: provider acme has no address; set options.baseURL"
    assert len(rest) == 4

    path.write_text(json.dumps({"model": "anthropic/claude-sonnet-4-5"}))
    assert shell("run", "hi").err == (
        "holdfast: anthropic cannot be used: it has no key; set ANTHROPIC_API_KEY or run "
        "`holdfast providers login anthropic`\n"
    )


@pytest.mark.parametrize("group", [(), ("session",), ("providers",)])
async def test_a_group_without_a_command_shows_its_help(shell: Shell, group: tuple[str, ...]) -> None:
    """As it is laid out, on standard error."""
    done = shell(*group)

    assert (done.code, done.out) == (2, "")
    assert done.err == shell(*group, "--help").out

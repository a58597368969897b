"""The title of a session that `holdfast run` began: waited for, within a bound."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import MockProvider, Reply, Say, Trouble
from tests.cli.conftest import Done, Shell, configured, ended, said


@pytest.fixture
async def namer() -> AsyncIterator[MockProvider]:
    """The provider of the small model."""
    async with MockProvider() as provider:
        yield provider


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider, namer: MockProvider) -> Shell:
    """A person whose titles come from another provider than the answers."""
    return configured(tmp_path, mock, namer, small_model="beta/m", agent={})


async def titles(shell: Shell) -> list[str]:
    listed = (await said(shell, "session", "list", "--format", "json")).json()
    return [each["title"] for each in listed]


@pytest.mark.ci
async def test_a_title_that_comes_after_a_short_answer_is_kept(
    shell: Shell, mock: MockProvider, namer: MockProvider
) -> None:
    """The process waits for it when everything is on the screen."""
    mock.play(Reply((Say("Hi."),)))
    namer.play(Reply((Say("A friendly greeting"),), pace_ms=100))

    assert await said(shell, "run", "hello") == Done(0, "Hi.\n", "")
    assert await titles(shell) == ["A friendly greeting"]


@pytest.mark.ci
async def test_a_title_that_never_comes_is_given_up(
    shell: Shell, mock: MockProvider, namer: MockProvider
) -> None:
    """The answer was given: that is what the exit code says, also when a person does not want to wait."""
    namer.play(Trouble("no-answer"), Trouble("no-answer"))
    mock.play(Reply((Say("Hi."),)), Reply((Say("Hi."),)))

    patient = await said(shell, "run", "hello")
    process = await anyio.to_thread.run_sync(lambda: shell.start("run", "hello"))
    assert process.stdout is not None
    assert await anyio.to_thread.run_sync(process.stdout.readline) == b"Hi.\n"
    with anyio.fail_after(60):
        while not any(each["time"].get("completed") for each in await answers(shell)):
            pass
    process.send_signal(signal.SIGINT)

    assert patient == Done(0, "Hi.\n", "")
    assert await ended(process) == Done(0, "", "")
    assert all(title.startswith("New session") for title in await titles(shell))


async def answers(shell: Shell) -> list[dict[str, dict[str, int]]]:
    """What was answered in the latest session."""
    latest = (await said(shell, "session", "list", "--format", "json")).json()[0]["id"]
    shown = (await said(shell, "session", "show", latest, "--format", "json")).json()
    return [each["info"] for each in shown["messages"]]

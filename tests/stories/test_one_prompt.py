"""`holdfast.run` and `run_sync`: one prompt, one answer, and nothing stays open."""

import inspect
from pathlib import Path
from typing import Annotated

import pytest

import holdfast
from holdfast.testing import Call, Fail, Say, ScriptedProvider, Step, answered
from tests.stories.world import World


@holdfast.tool(repeatable=True)
async def weather(context: holdfast.ToolContext, city: Annotated[str, "Where"]) -> str:
    """Tell the weather."""
    return f"Rain in {city}."


def open_files() -> set[str]:
    """What this process has open, but for pipes and sockets that have no name."""
    folder = Path("/proc/self/fd")
    return {str(each.readlink()) for each in folder.iterdir() if each.exists()} if folder.exists() else set()


def test_one_call_is_enough(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current directory, with the user's settings and a tool; the session is there afterwards."""
    monkeypatch.chdir(world.project)
    before = open_files()
    with ScriptedProvider(
        Step(Call("weather", {"city": "Ulm"}, id="one")),
        Step(Say("Take an umbrella."), expect=answered("one", "Rain in Ulm.")),
    ) as script:
        answer = holdfast.run_sync(
            "What is the weather in Ulm?", tools=[weather], store=world.store, provider=script
        )
    after = open_files()
    with ScriptedProvider(Step(Say("As before."))) as script:
        again = holdfast.run_sync(
            "And now?", session=answer.info.session_id, store=world.store, provider=script
        )

    assert (answer.text, again.text) == ("Take an umbrella.", "As before.")
    assert again.info.session_id == answer.info.session_id
    assert {each for each in after - before if "store.db" in each} == set()
    assert len(script.requests[0].messages) == 5


async def test_the_session_of_a_run_has_what_was_asked_for(world: World) -> None:
    """Its directory, its rules, and the first words as its title: the model is not asked for one."""
    rule = holdfast.Rule(permission="read", pattern="*", action="deny")
    with ScriptedProvider(Step(Say("ok"))) as script:
        answer = await holdfast.run(
            "  Look at " + "a" * 100,
            directory=world.project,
            permission=[rule],
            store=world.store,
            provider=script,
        )
    async with world.open() as (hf, _):
        session = await hf.sessions.get(answer.info.session_id)

    assert (session.directory, session.permission) == (str(world.project), [rule])
    assert session.title == "Look at " + "a" * 50


async def test_run_sync_in_an_event_loop_is_refused(world: World) -> None:
    """It would block the loop; nothing is opened, and the error names the way out."""
    with pytest.raises(holdfast.Refused, match="await run instead"):
        holdfast.run_sync("Hi", store=world.store)

    assert not Path(world.store.removeprefix("sqlite://")).exists()


async def test_a_run_that_fails_raises_or_returns(world: World) -> None:
    """As `process` does; a prompt that is refused leaves no session."""
    wrong = Step(Fail(holdfast.ProviderError("no such model")))
    with ScriptedProvider(wrong, wrong) as script:
        with pytest.raises(holdfast.AnswerFailed, match="no such model"):
            await holdfast.run("Hi", directory=world.project, store=world.store, provider=script)
        answer = await holdfast.run(
            "Hi", directory=world.project, store=world.store, provider=script, check=False
        )
        with pytest.raises(holdfast.NotFound, match="nobody"):
            await holdfast.run("Hi", agent="nobody", directory=world.project, store=world.store)
        with pytest.raises(holdfast.InvalidInput, match="names no model"):
            await holdfast.run("Hi", model="sonnet", directory=world.project, store=world.store)
        with pytest.raises(holdfast.InvalidInput, match="name no others"):
            await holdfast.run("Hi", session="ses_1", directory=world.project, store=world.store)
    async with world.open() as (hf, _):
        sessions = (await hf.sessions.list()).sessions

    assert answer.error is not None
    assert len(sessions) == 2


def test_both_have_the_same_arguments() -> None:
    """And their answers the same type."""
    assert inspect.signature(holdfast.run) == inspect.signature(holdfast.run_sync)

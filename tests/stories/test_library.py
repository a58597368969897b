"""The library: a turn as an iterator, the state of a session, agents, removal of what runs."""

from contextlib import aclosing

import anyio
import pytest

from holdfast.errors import ProviderError
from holdfast.provider.request.request import Request
from holdfast.schema.message import AnswerFailed
from holdfast.schema.permission import Rule
from holdfast.store.query import SessionQuery
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Fail, Step, Wait
from tests.stories.world import World, shape


async def test_a_turn_is_an_iterator_of_events_up_to_idle(world: World) -> None:
    """Leaving early leaves the work alone."""
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, _):
        session = await world.session(hf)
        async with aclosing(hf.sessions.turn(session, "Hi")) as events:
            types = [event.type async for event in events]
        assert types[-1] == "session.idle"
        assert types.count("session.idle") == 1
        assert "message.part.delta" in types or "message.part.updated" in types
        async with aclosing(hf.sessions.turn(session, "Again")) as events:
            async for _ in events:
                break
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)

    assert shape(page.messages)[-1][1][1] == ("text", "two")


FAILED = Step(Say("half of"), Fail(ProviderError("no such model", kind="other", status=404)))


async def test_an_answer_that_failed_raises_with_the_answer_in_it(world: World) -> None:
    """`check=False` returns it; either way it is stored, and the next prompt is answered."""
    async with world.open(FAILED, FAILED, Step(Say("fine"))) as (hf, _):
        session = await world.session(hf)
        with pytest.raises(AnswerFailed, match=r"^APIError in session ses_\w+: no such model") as caught:
            await hf.sessions.process(session, "Hi")
        returned = await hf.sessions.process(session, "Hi", check=False)
        fine = await hf.sessions.process(session, "Again")
        page = await hf.sessions.messages(session)

    assert (caught.value.answer, returned) == (page.messages[1], page.messages[3])
    assert (caught.value.status, returned.error, returned.text) == (404, caught.value.fault, "half of")
    assert (fine.error, fine.text) == (None, "fine")


async def test_a_turn_that_failed_raises_after_its_last_event(world: World) -> None:
    """A program that only prints deltas cannot mistake half an answer for one; `check=False` ends quietly."""
    async with world.open(FAILED, FAILED) as (hf, _):
        session = await world.session(hf)
        types: list[str] = []

        async def follow() -> None:
            async for event in hf.sessions.turn(session, "Hi"):
                types.append(event.type)  # noqa: PERF401 - what came before the error counts

        with pytest.raises(AnswerFailed) as caught:
            await follow()
        quiet = [event.type async for event in hf.sessions.turn(session, "Hi", check=False)]

    assert caught.value.answer.text == "half of"
    assert (types[-1], quiet[-1]) == ("session.idle", "session.idle")


async def test_an_agent_run_that_failed_raises(world: World) -> None:
    """As `process` does."""
    async with world.open(FAILED, FAILED) as (hf, _):
        with pytest.raises(AnswerFailed):
            await hf.agents.run("plan", "Where is it?", directory=world.project)
        returned = await hf.agents.run("plan", "Where is it?", directory=world.project, check=False)

    assert returned.error is not None


async def test_the_state_of_a_session_is_one_answer(world: World) -> None:
    """Itself, its messages, what it may do, and whether it waits for a word."""
    rule = Rule(permission="bash", pattern="*", action="deny")
    async with world.open(Step(Say("one"))) as (hf, _):
        session = await world.session(hf, permission=[rule])
        await hf.sessions.process(session, "Hi")
        state = await hf.sessions.state(session)
        info = await hf.sessions.get(session)
        page = await hf.sessions.messages(session)

    assert state.info == info
    assert state.messages.messages == page.messages
    assert (state.busy, state.recoverable, state.todos, state.snapshots) == (False, False, (), ())
    assert state.permission[-1] == rule


async def test_an_agent_is_given_a_task_of_its_own(world: World) -> None:
    """In a session that carries its name."""
    async with world.open(Step(Say("found it"))) as (hf, script):
        answer = await hf.agents.run("plan", "Where is it?", directory=world.project)
        (session,) = (await hf.sessions.list(SessionQuery(agent_runs=True))).sessions

    assert shape((answer,))[0][1][1] == ("text", "found it")
    assert (session.agent, session.title) == ("plan", "plan: Where is it?")
    assert len(script.requests[0].system) == 3


async def test_a_session_that_runs_is_interrupted_before_it_is_removed(world: World) -> None:
    """Its children too; nothing of them is left."""
    begun = anyio.Event()

    def expect(request: Request) -> str | None:
        begun.set()
        return None

    async with world.open(Step(Wait(anyio.Event()), Call("read", {}), expect=expect)) as (hf, _):
        parent = await world.session(hf)
        child = await world.session(hf, parent=parent)
        await hf.sessions.prompt(child, "go")
        with anyio.fail_after(20):
            await begun.wait()
            gone = await hf.sessions.remove(parent)
        assert set(gone) == {parent, child}
        assert (await hf.sessions.list()).sessions == ()

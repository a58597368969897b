"""The library: a turn as an iterator, the state of a session, agents, removal of what runs."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import pytest
from msgspec.structs import replace

import holdfast
from holdfast.errors import ProviderError
from holdfast.provider.request.request import Request
from holdfast.schema.message import AnswerFailed
from holdfast.schema.permission import Rule
from holdfast.sessions import prompts
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
    for each in (types, quiet):
        assert {"message.updated", "message.part.updated"} <= set(each)


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
        with anyio.fail_after(60):
            await begun.wait()
            gone = await hf.sessions.remove(parent)
        assert set(gone) == {parent, child}
        assert (await hf.sessions.list()).sessions == ()


async def test_a_session_is_made_with_a_model_by_name(world: World) -> None:
    """The first prompt goes to it; a value will do too, and what names no model is refused at once."""
    async with world.open(Step(Say("ok"))) as (hf, script):
        session = await hf.sessions.create(directory=world.project, title="x", model="scripted/m")
        ref = holdfast.ModelRef(provider_id="scripted", model_id="m", variant="high")
        by_value = await hf.sessions.create(directory=world.project, title="x", model=ref)
        answer = await hf.sessions.process(session.id, "Hi")
        for wrong in ("m", "", 5, {"id": "m"}):
            with pytest.raises(holdfast.InvalidInput, match="names no model; write provider/model"):
                await hf.sessions.create(directory=world.project, model=wrong)  # type: ignore[arg-type]
            with pytest.raises(holdfast.InvalidInput, match="names no model; write provider/model"):
                await hf.sessions.prompt(session.id, "Hi", model=wrong)  # type: ignore[arg-type]
        sessions = (await hf.sessions.list()).sessions

    named = holdfast.SessionModel(id="m", provider_id="scripted", variant="default")
    assert (session.model, by_value.model) == (named, replace(named, variant="high"))
    assert (answer.text, script.requests[0].model.id) == ("ok", "m")
    assert len(sessions) == 2


@pytest.mark.parametrize("call", ["prompt", "process", "turn"])
async def test_a_wrong_keyword_is_an_error_of_python(world: World, call: str) -> None:
    """Nothing is admitted. `mypy` finds it before that: the keywords are written out."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        with pytest.raises(TypeError, match="modle"):
            await getattr(hf.sessions, call)(session, "Hi", modle="a/b")
        with pytest.raises(TypeError, match="resume"):
            await hf.sessions.process(session, "Hi", resume=False)  # type: ignore[call-arg]
        assert (await hf.sessions.messages(session)).messages == ()


async def test_every_event_of_a_turn_has_a_type(world: World) -> None:
    """With a call, a question and a failed answer in it; a tool's own events have none."""

    @holdfast.tool()
    async def act(context: holdfast.ToolContext) -> str:
        """Do it."""
        await context.ask("act", ["x"])
        await context.commit("todo", [holdfast.Todo(content="x", status="pending", priority="low")])
        context.publish("done", {})
        return "did"

    async def allow(request: holdfast.PermissionRequest) -> holdfast.PermissionAnswer:
        return holdfast.PermissionAnswer(reply="once")

    world.settings(permission={"act": "ask"})
    async with world.open(Step(Call("act")), FAILED, on_ask=allow) as (hf, _):
        hf.tools.register(act)
        session = await world.session(hf)
        frames = [frame async for frame in hf.sessions.turn(session, "Hi", check=False)]
    events = [frame.event() for frame in frames]

    assert [event.type for event in events if event is not None] == [
        frame.type for frame in frames if frame.type != "holdfast.tool.done"
    ]
    # What is live only, and states that another has replaced by then, may be missed by a follower.
    stored = {
        "session.updated",
        "message.updated",
        "message.part.updated",
        "todo.updated",
        "permission.replied",
    }
    passing = {"session.status", "session.error", "session.idle", "message.part.delta", "permission.asked"}
    assert stored <= {frame.type for frame in frames} <= stored | passing | {"holdfast.tool.done"}


async def test_the_text_of_a_turn_comes_as_it_is_said(world: World) -> None:
    """Each character once, whatever the pieces; before the model has ended; and a failure raises."""
    gate = anyio.Event()
    first = Step(Say("Let me look."), Call("read", {"filePath": "a"}))
    second = Step(Say("It is fine."), Wait(gate), Say("I think."), delta_characters=2)
    async with world.open(first, second, FAILED, FAILED) as (hf, _):
        session = await world.session(hf)
        said = ""
        with anyio.fail_after(60):
            async for piece in hf.sessions.stream_text(session, "Hi"):
                said += piece
                if said.endswith("fine."):
                    gate.set()
        failed: list[str] = []

        async def follow() -> None:
            async for piece in hf.sessions.stream_text(session, "Hi"):
                failed.append(piece)  # noqa: PERF401 - what came before the error counts

        with pytest.raises(AnswerFailed):
            await follow()
        quiet = [piece async for piece in hf.sessions.stream_text(session, "Hi", check=False)]
        last = (await hf.sessions.messages(session)).messages[2]

    assert said == "Let me look.\n\nIt is fine.\n\nI think."
    assert last.text == "It is fine.\n\nI think."
    assert ("".join(failed), "".join(quiet)) == ("half of", "half of")


async def test_a_turn_that_ended_before_its_follower_began_is_shown_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow the feed is: nothing of the answer is left out, and the idle event is no condition."""
    monkeypatch.setattr(prompts, "LATE_S", 0.001)
    async with world.open(Step(Call("read", {"filePath": "a"})), Step(Say("It is fine."))) as (hf, _):
        session = await world.session(hf)
        follow = hf.feed.follow

        async def slow(cursor: str, *, session: str) -> AsyncGenerator[list[holdfast.Frame], None]:
            await hf.sessions.wait(session)
            async for frames in follow(cursor, session=session):
                for frame in frames:
                    for _ in range(3):
                        await hf.store.head()  # Longer than a follower waits in vain.
                    yield [frame]

        monkeypatch.setattr(hf.feed, "follow", slow)
        with anyio.fail_after(60):
            pieces = [piece async for piece in hf.sessions.stream_text(session, "Hi")]

    assert "".join(pieces) == "It is fine."

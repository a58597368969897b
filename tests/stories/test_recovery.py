"""A crash is an ordinary continuation: nothing acknowledged is lost, nothing is done twice without need."""

import anyio
import pytest

from holdfast.errors import InvariantBroken, Refused
from holdfast.provider.request.request import Request, SystemUpdate
from holdfast.schema.fault import AbortedFault, UnknownData, UnknownFault
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.schema.stored import Mark
from holdfast.schema.tool_state import ToolError
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait, answered
from tests.stories import inside
from tests.stories.crashing import Dead, Machine, life
from tests.stories.permissions import asked
from tests.stories.recovery import await_open
from tests.stories.tools import Deed
from tests.stories.world import Attached, World, shape


def calls(messages: tuple[MessageWithParts, ...]) -> list[ToolPart]:
    """The calls of a session."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolPart)]


async def test_text_that_was_saved_is_kept_and_gone_on_from(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is told that its last message broke off."""
    monkeypatch.setattr("holdfast.runtime.answer.processor.CHECKPOINT_MS", 1)
    machine, gate = Machine(), anyio.Event()
    script = ScriptedProvider(Step(Say("half a sentence"), Wait(gate)))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        watch = hf.store.watch()
        with anyio.fail_after(60):
            while "half" not in str(shape((await hf.sessions.messages(session)).messages)):
                await watch.wait()
        watch.close()
        mortal.kill()

    def expect(request: Request) -> str | None:
        return None if isinstance(request.messages[-1], SystemUpdate) else "not told"

    script = ScriptedProvider(Step(Say(", and the rest"), expect=expect))
    async with life(world.store, machine, provider=script) as (hf, _):
        assert not (await hf.store.session(session)).busy
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    script.check()

    answers = [each for each in shape(page.messages) if each[0] == "assistant"]
    assert answers[0][1][:2] == ["step-start", ("text", "half a sentence")]
    assert answers[1][1][1] == ("text", ", and the rest")
    assert await_open(page.messages) == []


async def test_what_a_dead_runner_left_can_be_aborted(world: World) -> None:
    """Nobody runs it any more, and it is not finished either: its call and its message are closed."""
    world.settings(permission={"*": "allow"})
    machine, deed = Machine(), Deed()
    deed.gate = anyio.Event()
    script = ScriptedProvider(Step(Say("half"), Call("act", {"what": "x"})))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await deed.begun.wait()
        mortal.kill()
    async with life(world.store, machine, provider=ScriptedProvider()) as (hf, _):
        assert await hf.sessions.interrupt(session)
        page = await hf.sessions.messages(session)
        assert not await hf.sessions.interrupt(session)

    assert await_open(page.messages) == []
    assert isinstance(page.messages[-1].info.error, AbortedFault)
    assert calls(page.messages)[0].state.metadata.get("outcome") == "unknown"


async def test_a_call_that_may_have_happened_is_unknown_and_waits_for_a_word(world: World) -> None:
    """It is not run again. A new prompt goes on, and the model is told what is unknown."""
    world.settings(permission={"act": "allow"})
    machine, deed = Machine(), Deed()
    deed.gate = anyio.Event()
    script = ScriptedProvider(Step(Call("act", {"what": "x"}, id="c")))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        mortal.kill()

    script = ScriptedProvider(Step(Say("let me look"), expect=answered("c", "is unknown")))
    async with life(world.store, machine, provider=script) as (hf, _):
        hf.tools.register(deed.tool)
        await inside.wake(hf, session)
        await hf.sessions.wait(session)
        assert script.requests == [], "nobody has said a word"
        (part,) = calls((await hf.sessions.messages(session)).messages)
        assert isinstance(part.state, ToolError)
        assert part.state.metadata == {"outcome": "unknown", "interrupted": True}
        await hf.sessions.process(session, "go on")
    script.check()
    assert deed.done == []


async def test_a_call_that_does_no_harm_twice_is_run_again(world: World) -> None:
    """And the work goes on by itself."""
    world.settings(permission={"act": "allow"})
    machine, deed = Machine(), Deed(repeatable=True)
    deed.gate = anyio.Event()
    script = ScriptedProvider(Step(Call("act", {"what": "x"}, id="c")))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        mortal.kill()

    deed.gate.set()
    script = ScriptedProvider(Step(Say("done"), expect=answered("c", "did x")))
    async with life(world.store, machine, provider=script) as (hf, _):
        hf.tools.register(deed.tool)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
    script.check()


@pytest.mark.ci
@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
async def test_wherever_it_dies_the_session_goes_on(world: World, after: bool) -> None:
    """Stopped at the n-th write, n = 1, 2, 3 … until it completes; then recovered and prompted again.

    No acknowledged prompt is lost, no call is settled twice or left running, nothing stays open, the harmless
    tool ran, the other ran at most once, and the next request is valid.
    """
    world.settings(permission={"*": "allow"})
    (world.project / "a.txt").write_text("text of a\n")
    completed = False
    for dies_at in range(1, 60):
        machine, deed = Machine(), Deed()
        url = f"{world.store}-{after}-{dies_at}"
        script = ScriptedProvider(
            Step(
                Say("first"),
                Call("read", {"filePath": "a.txt"}, id="c1"),
                Call("act", {"what": "x"}, id="c2"),
            ),
            Step(Say("second")),
            Step(Say("third")),
        )
        session, acknowledged = "", 0
        async with life(url, machine, provider=script, dies_at=dies_at, after=after) as (hf, mortal):
            hf.tools.register(deed.tool)
            try:
                session = await world.session(hf)
                for words in ("one", "two"):
                    await hf.sessions.prompt(session, words)
                    acknowledged += 1
                    await hf.sessions.wait(session)
            except (Dead, InvariantBroken):
                assert mortal.dead.is_set()
            completed = not mortal.dead.is_set()
        await recovered(url, machine, deed, session=session, acknowledged=acknowledged)
        if completed:
            return
    pytest.fail("the story never came to its end")


async def recovered(url: str, machine: Machine, deed: Deed, *, session: str, acknowledged: int) -> None:
    """The next process finds a session in order, and can go on with it."""
    script = ScriptedProvider(*(Step(Say("again")) for _ in range(4)))
    async with life(url, machine, provider=script) as (hf, _):
        hf.tools.register(deed.tool)
        if not session or await hf.store.session(session) is None:
            return
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "last")
        page = await hf.sessions.messages(session)
        said = [part for message in shape(page.messages) if message[0] == "user" for part in message[1]]
        assert len(said) >= acknowledged + 1
        assert said[-1] == ("text", "last")
        assert await_open(page.messages) == []
        states = [part.state.__struct_config__.tag for part in calls(page.messages)]
        assert set(states) <= {"completed", "error"}
        assert len(deed.done) <= 1
        if any(
            part.tool == "act" and part.state.__struct_config__.tag == "completed"
            for part in calls(page.messages)
        ):
            assert deed.done == ["x"]
        assert await hf.store.select("prompt", session=session, mark=Mark.OPEN) == []
        assert (await hf.store.examine()).clean


async def test_a_call_that_had_its_answer_and_went_on_is_not_run_again(world: World) -> None:
    """It may have had its effect: unknown, like any other call that had begun."""
    world.settings(permission={"act": "ask"})
    machine, deed = Machine(), Deed()
    deed.gate = anyio.Event()
    script = ScriptedProvider(Step(Call("act", {"what": "x"}, id="c")))
    async with life(world.store, machine, provider=script, presence=Attached()) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        watch = hf.store.watch()
        with anyio.fail_after(60):
            while not (requests := await hf.sessions.requests(session)):
                await watch.wait()
            watch.close()
            await hf.sessions.reply(session, requests[0].id, "once")
            await deed.begun.wait()
        mortal.kill()

    deed.gate.set()
    script = ScriptedProvider(Step(Say("look first"), expect=answered("c", "is unknown")))
    async with life(world.store, machine, provider=script, presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
    script.check()
    assert deed.done == []


async def test_a_session_whose_directory_is_gone_is_not_worked_on_when_it_is_resumed(world: World) -> None:
    """The prompt was admitted when the directory was there: the model is not asked, the answer says why, and
    the work goes on when the directory is back.
    """
    away = world.project.with_name("away")
    async with world.open() as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", resume=False)
    world.project.rename(away)
    async with world.open() as (hf, _):
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        (_, refused) = (await hf.sessions.messages(session)).messages
    away.rename(world.project)
    async with world.open(Step(Say("done"))) as (hf, _):
        answer = await hf.sessions.process(session, "now")

    assert isinstance(refused.info, AssistantMessage)
    assert refused.info.error == UnknownFault(
        data=UnknownData(
            message=f"{world.project} is not here, so session {session} can only be read; "
            f"`holdfast session move {session} [DIR]` lets it work elsewhere"
        )
    )
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None


async def test_a_command_of_the_user_settles_what_a_dead_runner_left(world: World) -> None:
    """It continues nothing; the model is told with the next prompt what is unknown."""
    world.settings(permission={"*": "allow"})
    machine, deed = Machine(), Deed()
    deed.gate = anyio.Event()
    script = ScriptedProvider(Step(Call("act", {"what": "x"}, id="c")))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        mortal.kill()

    script = ScriptedProvider(Step(Say("let me look"), expect=answered("c", "is unknown")))
    async with life(world.store, machine, provider=script) as (hf, _):
        await hf.sessions.shell(session, "true")
        page = await hf.sessions.messages(session)
        assert await_open(page.messages) == []
        assert script.requests == []
        assert calls(page.messages)[0].state.metadata.get("outcome") == "unknown"
        await hf.sessions.process(session, "go on")
    script.check()
    assert deed.done == []


async def test_no_command_of_the_user_runs_while_a_call_waits_for_an_answer(world: World) -> None:
    """The call would be forgotten, and the answer with it."""
    world.settings(permission={"act": "ask"})
    machine, deed = Machine(), Deed()
    script = ScriptedProvider(Step(Call("act", {"what": "x"}, id="c")))
    async with life(world.store, machine, provider=script, presence=Attached()) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await asked(hf, session)
        mortal.kill()

    script = ScriptedProvider(Step(Say("ok"), expect=answered("c", "did x")))
    async with life(world.store, machine, provider=script, presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        with pytest.raises(Refused, match="waits for an answer"):
            await hf.sessions.shell(session, "true")
        (question,) = await hf.sessions.requests(session)
        await hf.sessions.reply(session, question.id, "once")
        await hf.sessions.wait(session)
    script.check()
    assert deed.done == ["x"]

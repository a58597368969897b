"""Prompts that want no reply: they are heard, and change nothing about the work that they join."""

import anyio

from holdfast.errors import NotFound
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories import inside
from tests.stories.crashing import Machine, life
from tests.stories.tools import Deed
from tests.stories.world import World, is_shown, shape
from tests.until import until

FORM = JsonSchemaFormat(schema={"type": "object", "properties": {"n": {"type": "integer"}}})


async def test_a_note_opens_no_tool_and_drops_no_form(world: World) -> None:
    """The prompt in work closed a tool and asked for a form: both hold after the note was heard."""
    deed, begun, gate = Deed(ask=False), anyio.Event(), anyio.Event()

    @tool(name="hold")
    async def hold(context: ToolContext) -> str:
        """Wait."""
        begun.set()
        await gate.wait()
        return "held"

    steps = (
        Step(Call("hold", {}, id="c1")),
        Step(Call("act", {"what": "x"}, id="c2")),
        Step(Call("StructuredOutput", {"n": 1}, id="c3")),
    )
    async with world.open(*steps) as (hf, script):
        hf.tools.register(deed.tool)
        hf.tools.register(hold)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", tools={"act": False}, format=FORM)
        await begun.wait()
        await hf.sessions.prompt(session, "by the way", no_reply=True)
        gate.set()
        await hf.sessions.wait(session)
        last = (await hf.sessions.messages(session)).messages[-1]

    assert deed.done == []
    assert [request.tool_choice for request in script.requests] == ["required"] * 3
    assert "by the way" in str(script.requests[1].messages)
    assert last.info.structured == {"n": 1}


async def test_a_note_is_never_answered_by_itself(world: World) -> None:
    """Neither when it is said nor when the session is resumed; the next prompt's answer has heard it."""
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "first")
        note = await hf.sessions.process(session, "a note", no_reply=True)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        assert len(script.requests) == 1
        await hf.sessions.process(session, "second")

    assert shape((note,)) == [("user", [("text", "a note")])]
    assert "a note" in str(script.requests[1].messages)


async def test_a_prompt_is_answered_with_its_own_answer(world: World) -> None:
    """Also when it is admitted again after others; two that were answered together have one answer."""
    gate = anyio.Event()
    async with world.open(Step(Say("one")), Step(Say("two")), Step(Wait(gate), Say("three"))) as (hf, _):
        session = await world.session(hf)
        id = "msg_000000000001" + "a" * 14
        first = await hf.sessions.process(session, "first", id=id)
        await hf.sessions.process(session, "second")
        assert await hf.sessions.process(session, "first", id=id) == first

        together = "msg_000000000002" + "a" * 14
        await hf.sessions.prompt(session, "third", id=together, resume=False)
        gate.set()
        last = await hf.sessions.process(session, "fourth")
        assert await hf.sessions.process(session, "third", id=together) == last


async def test_a_note_is_no_word_about_an_unknown_outcome(world: World) -> None:
    """The session waits for `resume` or a prompt, whatever is noted meanwhile."""
    world.settings(permission={"*": "allow"})
    machine, deed = Machine(), Deed()
    deed.gate = anyio.Event()
    script = ScriptedProvider(Step(Call("act", {"what": "x"})))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await deed.begun.wait()
        mortal.kill()
    script = ScriptedProvider(Step(Say("I looked.")))
    async with life(world.store, machine, provider=script) as (hf, _):
        hf.tools.register(deed.tool)
        wake = inside.coordinator(hf).wake
        await wake(session)
        await hf.sessions.wait(session)
        await hf.sessions.prompt(session, "by the way", no_reply=True)
        await wake(session)
        await hf.sessions.wait(session)
        state = await hf.sessions.state(session)
        assert (state.recoverable, script.requests) == (True, [])
        await hf.sessions.process(session, "go on")
    script.check()


async def test_a_prompt_that_was_never_heard_has_no_answer(world: World) -> None:
    """It queued behind work that was interrupted: the answer to that work is not its own."""
    gate = anyio.Event()
    deed = Deed(ask=False)
    deed.gate = gate
    steps = (Step(Call("act", {"what": "x"})), Step(Say("about the first"), Wait(anyio.Event())))
    async with world.open(*steps) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        failed: list[Exception] = []

        async def second() -> None:
            try:
                await hf.sessions.process(session, "second", delivery="queue")
            except NotFound as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            await hf.sessions.prompt(session, "first")
            await deed.begun.wait()
            group.start_soon(second)
            await until(lambda: is_shown(hf, session, count=3), store=hf.store)
            gate.set()
            await until(lambda: len(script.requests) >= 2)
            await hf.sessions.interrupt(session)

    assert "has no answer yet" in str(failed[0])

"""A session that is forked at work, or after its process died at work: the fork's model knows what began."""

import json

import anyio
import pytest

from holdfast.schema.tool_state import ToolError, ToolRunning
from holdfast.sessions.open_answer import AT_WORK, WAITED
from holdfast.testing.mock_provider import MockProvider, Reply
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, Wait
from tests.prefixes import blocks, first_difference
from tests.stories.processes import Place, Worker
from tests.stories.processes import calls as calls_of
from tests.stories.recovery import await_open
from tests.stories.tools import Deed
from tests.stories.world import Attached, World
from tests.until import until

ONE, TWO = Call("act", {"what": "one"}, id="one"), Call("look", {"what": "two"}, id="two")


async def test_a_fork_of_a_session_at_work_knows_what_began(world: World) -> None:
    """In the fork the answer is over: a call that is done is told as done, one at work as unknown. The prompt
    that follows extends what the source was sent; the source goes on as if nothing had happened.
    """
    slow, quick = Deed(ask=False), Deed("look", ask=False)
    steps = Step(Say("Both."), ONE, TWO), Step(Say("In the fork.")), Step(Say("Done."))
    async with world.open(*steps) as (hf, script):
        hf.tools.register(slow.tool)
        hf.tools.register(quick.tool)
        session = await world.session(hf)
        slow.gate = anyio.Event()
        await hf.sessions.prompt(session, "go")

        async def half() -> bool:
            calls = calls_of((await hf.sessions.messages(session)).messages)
            return {id: call.state.__struct_config__.tag for id, call in calls.items()} == {
                "one": "running",
                "two": "completed",
            }

        await until(half)
        before = (await hf.sessions.messages(session)).messages
        fork = (await hf.sessions.fork(session)).id
        copied = (await hf.sessions.messages(fork)).messages
        assert (await hf.sessions.messages(session)).messages == before
        await hf.sessions.process(fork, "what did you do?")
        first, forked = script.requests
        slow.gate.set()
        await hf.sessions.wait(session)
        own = calls_of((await hf.sessions.messages(session)).messages)

    calls = calls_of(copied)
    state = calls["one"].state
    assert isinstance(state, ToolError)
    assert state.error == AT_WORK
    assert (state.metadata or {})["outcome"] == "unknown"
    assert calls["two"].state == calls_of(before)["two"].state
    assert await_open(copied) == []
    assert [(each.info.session_id, each.info.role) for each in copied] == [
        (fork, "user"),
        (fork, "assistant"),
    ]
    assert copied[1].info.parent_id == copied[0].info.id
    assert first_difference(blocks(first), blocks(forked)) is None
    assert (AT_WORK in str(forked.messages), "did two" in str(forked.messages)) == (True, True)
    assert own["one"].state.output == "did one"


async def test_a_call_that_waits_for_consent_has_done_nothing_in_the_fork(world: World) -> None:
    """Nobody is asked twice, and the model is told that it did not run."""
    deed = Deed()
    async with world.open(Step(ONE), Step(Say("Not yet.")), Step(Say("Done.")), presence=Attached()) as (
        hf,
        _,
    ):
        hf.tools.register(deed.tool)
        session = await world.session(hf, permission=[{"permission": "*", "pattern": "*", "action": "ask"}])
        await hf.sessions.prompt(session, "go")

        async def asked() -> bool:
            return len(await hf.sessions.requests(session)) == 1

        await until(asked)
        fork = (await hf.sessions.fork(session)).id
        await hf.sessions.process(fork, "and?")
        copied = calls_of((await hf.sessions.messages(fork)).messages)["one"].state
        assert list(await hf.sessions.requests(fork)) == []
        (request,) = await hf.sessions.requests(session)
        await hf.sessions.reply(session, request.id, "once")
        await hf.sessions.wait(session)

    assert isinstance(copied, ToolError)
    assert (copied.error, (copied.metadata or {})["outcome"]) == (WAITED, "interrupted")
    assert deed.done == ["one"]


async def test_an_answer_without_a_call_is_left_out(world: World) -> None:
    """The fork's model answers the prompt itself."""
    gate = anyio.Event()
    async with world.open(Step(Say("Half of it"), Wait(gate), Say(" and the rest.")), Step(Say("Mine."))) as (
        hf,
        script,
    ):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")

        async def begun() -> bool:
            return len((await hf.sessions.messages(session)).messages) == 2

        await until(begun)
        fork = (await hf.sessions.fork(session)).id
        roles = [each.info.role for each in (await hf.sessions.messages(fork)).messages]
        await hf.sessions.process(fork, "again")
        gate.set()
        await hf.sessions.wait(session)
    assert roles == ["user"]
    assert "Half" not in str(script.requests[1].messages)


@pytest.mark.ci
async def test_a_fork_of_what_a_crash_left_knows_of_the_call(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """Nobody has put the source in order; its own record stays for whoever does."""
    mock.play(
        Reply((Call("program", {"what": "sleep"}, id="c1"),)),
        Reply((Say("I know."),)),
    )
    session = str(await workers[0].do("create", directory=str(place.project)))
    await workers[0].do("prompt", session=session, text="go")
    await until(lambda: len(place.lines("begin")) == 1)
    await workers[0].kill()

    code, said, _ = await place.command("session", "fork", session, "--format", "json")
    fork = json.loads(said)["id"]
    ran = await place.command("run", "--session", fork, "what did you do?")
    left = calls_of(await place.messages(session))["c1"].state

    assert (code, *ran) == (0, 0, "I know.\n", "")
    assert isinstance(left, ToolRunning)
    assert AT_WORK in str(mock.requests[-1].json["messages"])

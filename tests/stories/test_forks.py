"""A session that is forked at work, or after its process died at work: the fork's model knows what began."""

import json
from collections.abc import Sequence

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.provider.request.events import (
    ToolCalled,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResulted,
)
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.schema.part import StepStartPart
from holdfast.schema.request import Question
from holdfast.schema.tool_state import ToolCompleted, ToolError, ToolRunning
from holdfast.sessions.open_answer import AT_WORK, UNSAID, WAITED
from holdfast.store.record import StoredMessage
from holdfast.testing.mock_provider import MockProvider, Reply
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Events, Step, Wait
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.prefixes import blocks, first_difference
from tests.stories import pruning
from tests.stories.loops import impatient
from tests.stories.processes import Place, Worker
from tests.stories.processes import calls as calls_of
from tests.stories.recovery import await_open
from tests.stories.tools import Deed
from tests.stories.world import Attached, World
from tests.until import until

COUNT: dict[str, object] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ONE, TWO = Call("act", {"what": "one"}, id="one"), Call("look", {"what": "two"}, id="two")


async def running(hf: Holdfast, session: str, call: str = "one") -> None:
    """Return when a call is at work."""

    async def is_running() -> bool:
        calls = calls_of((await hf.sessions.messages(session)).messages)
        return call in calls and isinstance(calls[call].state, ToolRunning)

    await until(is_running)


async def asked(hf: Holdfast, session: str) -> str:
    """The request of a call that waits."""

    async def waits() -> bool:
        return len(await hf.sessions.requests(session)) == 1

    await until(waits)
    return (await hf.sessions.requests(session))[0].id


async def parked(world: World, hf: Holdfast) -> str:
    """A session whose call waits for the user, and that nobody runs any more."""
    impatient(hf)
    session = await world.session(hf, permission=[{"permission": "*", "pattern": "*", "action": "ask"}])
    await hf.sessions.prompt(session, "go")
    await asked(hf, session)

    async def rests() -> bool:
        return not (await hf.sessions.state(session)).busy

    await until(rests)
    return session


async def told(hf: Holdfast, session: str) -> dict[str, tuple[str, str]]:
    """What a fork says of the calls that were not settled: the words, and the outcome."""
    calls = calls_of((await hf.sessions.messages(session)).messages)
    return {
        id: (call.state.error, str((call.state.metadata or {})["outcome"]))
        for id, call in calls.items()
        if isinstance(call.state, ToolError)
    }


async def moves(hf: Holdfast, session: str) -> list[str | None]:
    """Why each request of a session does not begin as the one before it."""
    parts = [part for each in (await hf.sessions.messages(session)).messages for part in each.parts]
    found = [part.prefix for part in parts if isinstance(part, StepStartPart)]
    return [None if each is None else each.moved for each in found]


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

        request = await asked(hf, session)
        fork = (await hf.sessions.fork(session)).id
        await hf.sessions.process(fork, "and?")
        copied = calls_of((await hf.sessions.messages(fork)).messages)["one"].state
        assert list(await hf.sessions.requests(fork)) == []
        await hf.sessions.reply(session, request, "once")
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


async def test_the_fork_s_request_extends_the_last_one_of_the_source(world: World) -> None:
    """What that brought counts too: tools that came with it stay in force where they are gone by now."""
    slow, other = Deed(ask=False), Deed("look", ask=False)
    async with world.open(Step(Say("First.")), Step(ONE), Step(Say("Done."))) as (hf, script):
        hf.tools.register(slow.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "hello")
        hf.tools.register(other.tool)
        slow.gate = anyio.Event()
        await hf.sessions.prompt(session, "go")
        await running(hf, session)
        fork = (await hf.sessions.fork(session)).id
        last = script.requests[-1]
        slow.gate.set()
        await hf.sessions.wait(session)
    async with world.open(Step(Say("In the fork."))) as (hf, script):
        hf.tools.register(slow.tool)
        await hf.sessions.process(fork, "what?")
        moved = await moves(hf, fork)
    assert first_difference(blocks(last), blocks(script.requests[0])) is None
    assert moved == [None, "tools", None]


@pytest.mark.ci
async def test_what_was_pruned_for_the_last_request_stays_pruned(world: World) -> None:
    """A fork of a session at work is sent no more than the session itself."""
    pruning.settings(world, prune=True)
    slow = Deed(ask=False)
    async with world.open(*pruning.script(8), Step(ONE), Step(Say("Done."))) as (hf, script):
        hf.tools.register(slow.tool)
        session = await pruning.flooded(world, hf, 8)
        slow.gate = anyio.Event()
        await hf.sessions.prompt(session, "go")
        await running(hf, session)
        fork = (await hf.sessions.fork(session)).id
        last = script.requests[-1]
        slow.gate.set()
        await hf.sessions.wait(session)
    pruning.settings(world, prune=False)
    async with world.open(Step(Say("In the fork."))) as (hf, script):
        hf.tools.register(slow.tool)
        hf.tools.register(pruning.flood)
        await hf.sessions.process(fork, "what?")
        moved = await moves(hf, fork)
    assert first_difference(blocks(last), blocks(script.requests[0])) is None
    assert moved[-1] is None


async def test_an_id_that_an_earlier_answer_used_says_nothing_of_this_call(world: World) -> None:
    """That one was refused; this one runs."""
    deed = Deed()
    rules = [
        {"permission": "*", "pattern": "*", "action": "ask"},
        {"permission": "act", "pattern": "one", "action": "allow"},
    ]
    no = Call("act", {"what": "no"}, id="one")
    steps = Step(no), Step(ONE), Step(Say("In the fork.")), Step(Say("Done."))
    async with world.open(*steps, presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf, permission=rules)
        await hf.sessions.prompt(session, "go")
        deed.gate = anyio.Event()
        await hf.sessions.reply(session, await asked(hf, session), "reject", message="the other one")
        await deed.begun.wait()
        await running(hf, session)
        fork = (await hf.sessions.fork(session)).id
        told_there = await told(hf, fork)
        await hf.sessions.process(fork, "and?")
        deed.gate.set()
        await hf.sessions.wait(session)
    assert told_there["one"] == (AT_WORK, "unknown")


@pytest.mark.needs("bash")
async def test_a_command_of_the_user_s_own_owes_nothing_in_the_fork(world: World) -> None:
    """Nor in the session itself: the model has no part in it."""
    async with world.open(Step(Say("Hi."))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "hello")
        async with anyio.create_task_group() as group:
            group.start_soon(hf.sessions.shell, session, "until [ -e over ]; do sleep 0.05; done")

            async def begun() -> bool:
                calls = calls_of((await hf.sessions.messages(session)).messages)
                return any(isinstance(call.state, ToolRunning) for call in calls.values())

            await until(begun)
            fork = (await hf.sessions.fork(session)).id
            (world.project / "over").touch()
        finishes = [
            [getattr(each.info, "finish", None) for each in (await hf.sessions.messages(one)).messages]
            for one in (session, fork)
        ]
        await hf.sessions.resume(fork)
        await hf.sessions.wait(fork)
    assert finishes[0] == finishes[1] == [None, "stop", None, "command"]
    assert len(script.requests) == 1


async def test_an_answer_whose_calls_are_the_provider_s_is_left_out(world: World) -> None:
    """They have done nothing here; the prompt is still owed an answer."""
    gate = anyio.Event()
    called = ToolCalled(id="s", name="web_search", input={"q": 1}, hosted=True, metadata={"block": "s"})
    result = ToolResulted(id="s", name="web_search", output=[1], metadata={})
    steps = Step(Events((called,)), Wait(gate), Events((result,)), Say("It is.")), Step(Say("In the fork."))
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await running(hf, session, "s")
        fork = (await hf.sessions.fork(session)).id
        await hf.sessions.resume(fork)
        await hf.sessions.wait(fork)
        assert len(script.requests) == 2
        gate.set()
        await hf.sessions.wait(session)


async def test_structured_output_that_was_given_is_given_in_the_fork(world: World) -> None:
    """Nobody asks for it again."""
    slow = Deed(ask=False)
    given = Call("StructuredOutput", {"n": 3}, id="given")
    async with world.open(Step(ONE, given)) as (hf, script):
        hf.tools.register(slow.tool)
        session = await world.session(hf)
        slow.gate = anyio.Event()
        await hf.sessions.prompt(session, "count", format=JsonSchemaFormat(schema=COUNT))
        await running(hf, session)

        async def taken() -> bool:
            calls = calls_of((await hf.sessions.messages(session)).messages)
            return "given" in calls and isinstance(calls["given"].state, ToolCompleted)

        await until(taken)
        fork = (await hf.sessions.fork(session)).id
        answer = (await hf.sessions.messages(fork)).messages[-1]
        await hf.sessions.resume(fork)
        await hf.sessions.wait(fork)
        slow.gate.set()
        await hf.sessions.wait(session)
    assert answer.info.structured == {"n": 3}
    assert len(script.requests) == 1


@pytest.mark.ci
async def test_a_call_that_has_not_run_is_told_as_such(world: World) -> None:
    """One that is still being written, beside one at work; and a question that waits for its answer."""
    gate, slow = anyio.Event(), Deed(ask=False)
    half = Events((ToolInputStart(id="two", name="act"), ToolInputDelta(id="two", text='{"wh')))
    rest = Events((ToolInputDelta(id="two", text='at": "x"}'), ToolInputEnd(id="two")))
    end = Events((ToolCalled(id="two", name="act", input={"what": "x"}),))
    one = {"question": "Which?", "header": "W", "options": [{"label": "a", "description": "b"}]}
    which = Call("question", {"questions": [one]}, id="which")
    steps = Step(ONE, half, Wait(gate), rest, end), Step(Say("Done.")), Step(which), Step(Say("Then a."))
    async with world.open(*steps, presence=Attached()) as (hf, _):
        hf.tools.register(slow.tool)
        session = await world.session(hf, permission=[{"permission": "*", "pattern": "*", "action": "allow"}])
        slow.gate = anyio.Event()
        await hf.sessions.prompt(session, "go")
        await running(hf, session)

        async def written() -> bool:
            return "two" in calls_of((await hf.sessions.messages(session)).messages)

        await until(written)
        first = await told(hf, (await hf.sessions.fork(session)).id)
        gate.set()
        slow.gate.set()
        await hf.sessions.wait(session)
        await hf.sessions.prompt(session, "ask me")
        request = await asked(hf, session)
        second = await told(hf, (await hf.sessions.fork(session)).id)
        await hf.sessions.answer(session, request, [["a"]])
        await hf.sessions.wait(session)
    assert first == {"one": (AT_WORK, "unknown"), "two": (UNSAID, "interrupted")}
    assert second == {"which": (WAITED, "interrupted")}


async def test_a_call_that_the_source_parked_is_settled_in_the_fork(world: World) -> None:
    """Its answer is complete and nobody runs the source; the call waits there, and did not run here."""
    deed, quick = Deed(), Deed("look", ask=False)
    async with world.open(Step(ONE, TWO), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        hf.tools.register(quick.tool)
        session = await parked(world, hf)
        fork = (await hf.sessions.fork(session)).id
        calls = calls_of((await hf.sessions.messages(fork)).messages)
        assert await told(hf, fork) == {"one": (WAITED, "interrupted")}
        assert isinstance(calls["two"].state, ToolCompleted)


async def test_what_was_said_behind_an_open_answer_stands_behind_it_in_the_fork(world: World) -> None:
    """A remark that nobody has to answer is heard at once where a parked call waits; the fork's model gets
    both in the order in which the source has them.
    """
    async with world.open(Step(ONE), Step(Say("In the fork.")), presence=Attached()) as (hf, script):
        hf.tools.register(Deed().tool)
        session = await parked(world, hf)
        await hf.sessions.prompt(session, "by the way", no_reply=True)
        fork = (await hf.sessions.fork(session)).id
        copied = (await hf.sessions.messages(fork)).messages
        await hf.sessions.process(fork, "and?")

        last = script.requests[-1].messages

    assert [message.info.role for message in copied] == ["user", "assistant", "user"]
    assert [message.info.id for message in copied] == sorted(message.info.id for message in copied)
    said = [str(message) for message in last]
    where = [next(at for at, text in enumerate(said) if word in text) for word in (WAITED, "by the way")]
    assert where == sorted(where)


async def test_a_call_that_ends_while_its_session_is_forked_is_told_as_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of the answer is what the store has when the fork is written."""
    slow = Deed(ask=False)
    async with world.open(Step(ONE), Step(Say("Done."))) as (hf, _):
        hf.tools.register(slow.tool)
        session = await world.session(hf)
        slow.gate = anyio.Event()
        await hf.sessions.prompt(session, "go")
        await running(hf, session)
        read = hf.store.originals
        tries: list[str] = []

        async def originals(source: str, below: int | None = None) -> Sequence[StoredMessage]:
            found = await read(source, below)
            tries.append(source)
            if len(tries) == 1:
                slow.gate.set()
                await hf.sessions.wait(session)
            return found

        monkeypatch.setattr(hf.store, "originals", originals)
        fork = (await hf.sessions.fork(session)).id
        call = calls_of((await hf.sessions.messages(fork)).messages)["one"]

    assert len(tries) == 2
    assert isinstance(call.state, ToolCompleted)


async def test_a_call_that_put_a_question_on_its_way_has_begun(world: World) -> None:
    """Of a tool that asks in the middle of its work nobody knows what it has done before."""

    @tool(name="odd")
    async def odd(context: ToolContext) -> str:
        """Do something, then ask."""
        await context.question([Question(question="Which?", header="W", options=[])])
        return "done"

    async with world.open(Step(Call("odd", {}, id="one")), Step(Say("Done.")), presence=Attached()) as (
        hf,
        _,
    ):
        hf.tools.register(odd)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        request = await asked(hf, session)
        fork = (await hf.sessions.fork(session)).id
        assert await told(hf, fork) == {"one": (AT_WORK, "unknown")}
        await hf.sessions.answer(session, request, [["a"]])
        await hf.sessions.wait(session)

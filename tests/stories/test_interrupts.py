"""An interrupt ends the work at once, keeps what was said, and settles everything."""

import contextlib
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import force_setattr, replace

import holdfast
from holdfast.errors import InvalidInput, NotFound, Refused, StoreBusy, StoreError
from holdfast.feed.frame import Delta
from holdfast.provider.request.events import ProviderEvent, Start
from holdfast.provider.request.request import Request
from holdfast.runtime import drain
from holdfast.runtime.answer.outcome import TurnOutcome
from holdfast.runtime.calls import tool_calls
from holdfast.runtime.engine import interrupt_requests
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch import epochs
from holdfast.runtime.process import coordinator
from holdfast.schema.fault import AbortedFault, Fault, UnknownFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import ToolPart
from holdfast.schema.stored import Mark
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.store.batch import Batch
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Step, Wait
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories import inside
from tests.stories.interrupting import ordered
from tests.stories.permissions import outcomes
from tests.stories.tools import Deed
from tests.stories.world import World, shape
from tests.until import until

LONG = " ".join(["word"] * 400)


async def test_what_was_said_is_kept(world: World) -> None:
    """The message is closed as aborted, and the model sees it the next time."""
    gate = anyio.Event()

    def expect(request: Request) -> str | None:
        kinds = [type(message).__name__ for message in request.messages]
        return None if kinds == ["User", "Assistant", "User"] else str(kinds)

    async with world.open(Step(Say("half"), Wait(gate), Say("never")), Step(Say("ok"), expect=expect)) as (
        hf,
        _,
    ):
        session = await world.session(hf)
        async with anyio.create_task_group() as group:
            heard = anyio.Event()

            async def listen() -> None:
                async for frames in hf.feed.follow("beginning", session=session):
                    if any(b"half" in frame.json() for frame in frames):
                        heard.set()
                        return

            group.start_soon(listen)
            await anyio.lowlevel.checkpoint()
            await hf.sessions.prompt(session, "one")
            with anyio.fail_after(60):
                await heard.wait()
            with anyio.fail_after(60):
                await hf.sessions.interrupt(session)
        page = await hf.sessions.messages(session)
        answer = page.messages[-1]
        assert isinstance(answer.info, AssistantMessage)
        assert isinstance(answer.info.error, AbortedFault)
        assert ("text", "half") in shape((answer,))[0][1]
        assert not (await hf.store.session(session)).busy
        await hf.sessions.process(session, "two")


async def test_a_call_that_runs_is_settled_as_interrupted(world: World) -> None:
    """Its effect did not happen, and the record says how it ended."""
    world.settings(permission={"act": "allow"})
    deed = Deed()
    deed.gate = anyio.Event()
    async with world.open(Step(Call("act", {"what": "x"}))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        with anyio.fail_after(60):
            await hf.sessions.interrupt(session)
        (part,) = [
            part
            for message in (await hf.sessions.messages(session)).messages
            for part in message.parts
            if isinstance(part, ToolPart)
        ]

    assert deed.done == []
    assert isinstance(part.state, ToolError)
    assert part.state.metadata == {"outcome": "interrupted", "interrupted": True}


async def test_an_idle_session_has_nothing_to_interrupt(world: World) -> None:
    """And a session that does not exist is told."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        await hf.sessions.interrupt(session)
        with pytest.raises(NotFound):
            await hf.sessions.interrupt("ses_000000000001AAAAAAAAAAAAAA")


async def test_another_process_can_interrupt(world: World) -> None:
    """By a record, which the runner follows."""
    gate, begun = anyio.Event(), anyio.Event()

    def expect(request: Request) -> str | None:
        begun.set()
        return None

    async with world.open(Step(Wait(gate), expect=expect)) as (hf, _), holdfast.open(world.store) as other:
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            await other.sessions.interrupt(session)
        answer = (await other.sessions.messages(session)).messages[-1]

    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, AbortedFault)


@pytest.mark.ci
async def test_an_interrupt_at_the_end_of_a_text_keeps_the_text(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the moment: between the last word and the record that closes it."""
    for pauses in range(12):
        gate, begun = anyio.Event(), anyio.Event()

        def expect(request: Request, begun: anyio.Event = begun) -> str | None:
            begun.set()
            return None

        async with world.open(Step(Wait(gate), Say("said"), Wait(anyio.Event()), expect=expect)) as (hf, _):
            session = await world.session(hf)
            await hf.sessions.prompt(session, "go")
            with anyio.fail_after(60):
                await begun.wait()
            parts = set[str]()
            delta = hf.feed.delta

            def told(each: Delta, parts: set[str] = parts, delta: Callable[[Delta], None] = delta) -> None:
                parts.add(each.part)
                delta(each)

            monkeypatch.setattr(hf.feed, "delta", told)
            gate.set()
            for _ in range(pauses):
                await anyio.lowlevel.checkpoint()
            with anyio.fail_after(60):
                await hf.sessions.interrupt(session)
            page = await hf.sessions.messages(session)

        texts = [part for message in shape(page.messages) for part in message[1] if part[0] == "text"]
        assert (("text", "said") in texts) == bool(parts), pauses


async def test_closing_interrupts_all_sessions_side_by_side(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tool here ends only when every other has been told to end, and none is left behind."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 20.0)
    world.settings(permission={"team": "allow"})
    count, begun, told, everyone = 5, [0], [0], anyio.Event()

    @tool()
    async def team(context: ToolContext) -> str:
        """Wait for the others."""
        begun[0] += 1
        try:
            await anyio.sleep_forever()
        finally:
            told[0] += 1
            if told[0] == count:
                everyone.set()
            with anyio.CancelScope(shield=True):
                await everyone.wait()
            return "together"  # noqa: B012 - it does not care for its cancellation

    sessions = []
    async with world.open(*(Step(Call("team", {}, id="c")) for _ in range(count))) as (hf, _):
        hf.tools.register(team)
        for _ in range(count):
            sessions.append(await world.session(hf))
            await hf.sessions.prompt(sessions[-1], "go")
        await until(lambda: begun[0] >= count)
    async with holdfast.open(world.store) as later:
        pages = [await later.sessions.messages(session) for session in sessions]
    assert [outcomes(page.messages) for page in pages] == [[("completed", "together")]] * count


@pytest.mark.ci
async def test_closing_does_not_wait_for_ever_for_a_session_that_does_not_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the provider's code does not hear: everything else is given back, and others bury the rest."""
    monkeypatch.setattr(coordinator, "CLOSE_S", 0.3)
    monkeypatch.setattr(coordinator, "RETIRE_S", 0.1)
    begun, gate, over = anyio.Event(), anyio.Event(), anyio.Event()

    class Deaf:
        async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
            begun.set()
            with anyio.CancelScope(shield=True):
                await gate.wait()
            over.set()
            yield Start()

    with anyio.fail_after(60):
        async with holdfast.open(world.store, provider=Deaf()) as hf:
            session = await world.session(hf)
            await hf.sessions.prompt(session, "go")
            await begun.wait()
    async with holdfast.open(world.store) as later:
        assert not (await later.store.session(session)).busy
    gate.set()
    with anyio.fail_after(60):
        await over.wait()


CTRL_C = """
import asyncio, os, signal, sys
import holdfast
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from holdfast.toolkit.declare import tool

@tool()
async def hang(context) -> str:
    "Hang."
    os.kill(os.getpid(), signal.SIGINT)
    {wait}

async def main():
    async with holdfast.open(sys.argv[1], provider=ScriptedProvider(Step(Call("hang", {{}}, id="c")))) as hf:
        hf.tools.register(hang)
        session = await hf.sessions.create(directory=sys.argv[2], title="A story", id=sys.argv[3])
        await hf.sessions.process(session.id, "go")

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("ended by Ctrl-C")
"""


@pytest.mark.ci
@pytest.mark.parametrize(
    "wait",
    ["await asyncio.sleep(60)", "os.kill(os.getpid(), signal.SIGINT); await asyncio.sleep(60)"],
    ids=["once", "twice"],
)
async def test_a_real_ctrl_c_ends_the_program_though_a_tool_runs(world: World, wait: str) -> None:
    """Also the second one, which is raised in the middle of the tool; what ran is settled."""
    world.settings(permission={"hang": "allow"})
    id = "ses_000000000001AAAAAAAAAAAAAA"
    program = [sys.executable, "-c", CTRL_C.format(wait=wait), world.store, str(world.project), id]
    with anyio.fail_after(30):
        done = await anyio.run_process(program, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"ended by Ctrl-C\n", b"", 0)
    async with holdfast.open(world.store) as later:
        page = await later.sessions.messages(id)
        assert not (await later.store.session(id)).busy
    ((state, _),) = outcomes(page.messages)
    assert state == "error"


async def test_an_interrupt_in_a_compaction_ends_the_work_too(world: World) -> None:
    """What was being worked on is not taken up again by the next wake, nor by the next prompt."""
    world.settings(compaction={"tail_turns": 0}, permission={"*": "allow"})
    deed = Deed(ask=False)
    first = Step(Say("x " + LONG), Call("act", {"what": "1"}), usage=Usage(input=95_000, output=100))
    async with world.open(first, Step(Wait(anyio.Event()))) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "Delete everything")
        await until(lambda: len(script.requests) >= 2)
        await hf.sessions.interrupt(session)
        await inside.wake(hf, session)
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)

    assert not script.requests[1].tools, "it was a compaction"
    assert len(script.requests) == 2
    last = page.messages[-1].info
    assert isinstance(last, AssistantMessage)
    assert not last.summary
    assert isinstance(last.error, AbortedFault)


@pytest.mark.ci
async def test_a_tool_that_swallows_its_cancellation_is_told_no_more(world: World) -> None:
    """Once it is left behind, nobody spends time on telling it again."""
    told, begun, ends = [], anyio.Event(), anyio.Event()

    @tool(name="deaf")
    async def deaf(context: ToolContext) -> str:
        """Never listen."""
        begun.set()
        while not ends.is_set():
            try:
                await anyio.sleep(0.05)
            except anyio.get_cancelled_exc_class():
                told.append(1)
        return "over"

    async with world.open(Step(Call("deaf", {}))) as (hf, _):
        hf.tools.register(deaf)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await begun.wait()
        await hf.sessions.interrupt(session)
        count = len(told)
        await anyio.sleep(0.2)  # In which it must not be told.
        ends.set()

    assert count > 0
    assert len(told) == count


@pytest.mark.ci
async def test_an_interrupt_from_before_the_claim_does_not_stop_the_next_prompt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its addressee never heard it. Whoever runs the session next closes it before he listens for others."""
    async with world.open(*[Step(Say("x"))] * 20) as (hf, _):
        watcher = inside.coordinator(hf).watcher
        real = interrupt_requests.answer

        async def looked_at_in_between(*arguments: Any, **named: Any) -> None:
            await watcher._look()  # At the worst moment: they are known, and still open.
            await real(*arguments, **named)

        monkeypatch.setattr(interrupt_requests, "answer", looked_at_in_between)
        for _ in range(20):
            session = await world.session(hf)
            request = await ordered(hf, session)
            answer = await hf.sessions.process(session, "hello")
            record = await hf.store.get(session, "request", request.id)

            assert shape((answer,)) == [("assistant", ["step-start", ("text", "x"), ("step-finish", "stop")])]
            assert record is not None
            assert record.mark is not Mark.OPEN


async def test_an_interrupt_that_is_written_at_the_claim_does_not_stop_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks for late ones before the claim does not see it: the owner that it names tells whose work
    was meant.
    """
    gate, begun = anyio.Event(), anyio.Event()
    async with world.open(Step(Wait(gate), Say("whole"), expect=noting(begun))) as (hf, _):
        session = await world.session(hf)
        runs = inside.coordinator(hf)
        real = runs._claims.take

        async def claim(session: str) -> Any:
            await ordered(hf, session, "own_1_before")
            return await real(session)

        monkeypatch.setattr(runs._claims, "take", claim)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            await runs.watcher._look()
            gate.set()
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)

    assert shape(page.messages)[-1] == (
        "assistant",
        ["step-start", ("text", "whole"), ("step-finish", "stop")],
    )


async def test_an_interrupt_does_not_stop_a_prompt_that_came_while_it_stopped_the_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one is being answered when the interrupt looks whether another process runs the session."""
    stops, gate, begun = anyio.Event(), anyio.Event(), anyio.Event()
    steps = Step(Wait(stops)), Step(Wait(gate), Say("whole"), expect=noting(begun))
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        runs = inside.coordinator(hf)
        real = runs._interrupt_here

        async def then_prompted(session: str) -> object:
            stopped = await real(session)
            await hf.sessions.prompt(session, "second")
            await begun.wait()
            return stopped

        monkeypatch.setattr(runs, "_interrupt_here", then_prompted)
        with anyio.fail_after(60):
            assert await hf.sessions.interrupt(session)
            monkeypatch.undo()
            gate.set()
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)

    assert shape(page.messages)[-1] == (
        "assistant",
        ["step-start", ("text", "whole"), ("step-finish", "stop")],
    )


@pytest.mark.parametrize("named", ["owner and claim", "owner", "none"])
async def test_a_run_obeys_an_interrupt_that_names_its_owner_or_none(world: World, named: str) -> None:
    """And closes it. Its claim may have been given another number since it began."""
    begun = anyio.Event()
    async with world.open(Step(Wait(anyio.Event()), expect=noting(begun))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            record = await hf.store.session(session)
            assert record is not None
            claim = record.claim + 1 if named == "owner and claim" else None
            request = await ordered(hf, session, None if named == "none" else record.owner, claim)
            await hf.sessions.wait(session)
        closed = await hf.store.get(session, "request", request.id)
        last = (await hf.sessions.messages(session)).messages[-1].info

    assert isinstance(last, AssistantMessage)
    assert isinstance(last.error, AbortedFault)
    assert closed is not None
    assert closed.mark is not Mark.OPEN


async def test_an_interrupt_of_a_run_that_has_ended_does_not_stop_the_next_run_of_the_same_owner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written after the next run began, so that nobody could close it before: the claim that it names
    tells which run was meant. Whoever asked learns at once that there is nothing left to stop.
    """
    ends, begun, gate = anyio.Event(), anyio.Event(), anyio.Event()
    steps = Step(Wait(ends), Say("one")), Step(Wait(gate), Say("two"), expect=noting(begun))
    async with world.open(*steps) as (hf, script), holdfast.open(world.store) as other:
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        runs, real = inside.coordinator(hf), other.store.commit

        async def late(batch: Batch) -> Any:
            if not begun.is_set():
                ends.set()
                await hf.sessions.wait(session)
                await hf.sessions.prompt(session, "second")
                await begun.wait()
            return await real(batch)

        monkeypatch.setattr(other.store, "commit", late)
        with anyio.fail_after(60):
            assert await other.sessions.interrupt(session)
            assert runs.active() == [session]
            gate.set()
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
        requests = await hf.store.select("request", session=session)

    assert [each.mark for each in requests] == [Mark.NONE]
    assert shape(page.messages)[-1] == ("assistant", ["step-start", ("text", "two"), ("step-finish", "stop")])


def noting(begun: anyio.Event) -> Callable[[Request], str | None]:
    """Expects any request, and tells when it came."""

    def expect(_: Request) -> str | None:
        begun.set()
        return None

    return expect


async def test_an_interrupt_that_was_obeyed_has_succeeded_whoever_has_the_session_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that waited for the session may take it at once, and finds it stopped."""
    begun = anyio.Event()
    async with world.open(Step(Wait(anyio.Event()), Say("never"), expect=noting(begun))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
        async with holdfast.open(world.store) as other:
            real = other.store.session

            async def taken_over(id: str) -> Any:
                record = await real(id)
                return record if record is None or record.busy else replace(record, owner="own_1_after")

            monkeypatch.setattr(other.store, "session", taken_over)
            with anyio.fail_after(60):
                assert await other.sessions.interrupt(session)
        page = await hf.sessions.messages(session)
    answer = page.messages[-1].info
    assert isinstance(answer, AssistantMessage)
    assert isinstance(answer.error, AbortedFault)


async def test_an_interrupt_does_not_wait_for_an_owner_that_it_does_not_mean(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner loses the session, and another one runs it: the caller learns so, and may ask again."""
    gate, begun = anyio.Event(), anyio.Event()
    async with world.open(Step(Wait(gate), Say("whole"), expect=noting(begun))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
        runs = inside.coordinator(hf)
        owner = runs.lease.id
        # It obeys nobody, and whoever asks sees another owner from then on.
        monkeypatch.setattr(runs.watcher, "_look", anyio.lowlevel.checkpoint)
        async with holdfast.open(world.store) as other:
            real = other.store.session

            async def taken_over(id: str) -> Any:
                record = await real(id)
                asked = await other.store.select("request", session=id)
                return replace(record, owner="own_1_after") if asked and record else record

            monkeypatch.setattr(other.store, "session", taken_over)
            with anyio.fail_after(60), pytest.raises(Refused, match="another owner runs it now"):
                await other.sessions.interrupt(session)
        (record,) = await hf.store.select("request", session=session)
        gate.set()
        await hf.sessions.wait(session)

    assert record.value().owner == owner
    assert record.mark is not Mark.OPEN


async def test_an_interrupt_that_is_refused_is_not_left_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner is paused and does not hear: the caller is told so, and the owner goes on afterwards."""
    monkeypatch.setattr(interrupt_requests, "INTERRUPT_S", 0.05)
    gate, begun = anyio.Event(), anyio.Event()

    def expect(request: Request) -> str | None:
        begun.set()
        return None

    async with world.open(Step(Say("half"), Wait(gate), Say("whole"), expect=expect)) as (hf, _):
        session = await world.session(hf)
        watcher = inside.coordinator(hf).watcher

        async def deaf() -> None:
            """Paused."""

        monkeypatch.setattr(watcher, "_look", deaf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
        async with holdfast.open(world.store) as other:
            with pytest.raises(Refused, match="did not stop within"):
                await other.sessions.interrupt(session)
        assert await hf.store.select("request", session=session, mark=Mark.OPEN) == []
        gate.set()
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)

    assert ("text", "whole") in shape(page.messages)[-1][1]


async def test_an_interrupt_elsewhere_waits_out_a_store_that_is_away(world: World) -> None:
    """Its caller is not told of a failure while the request is in force."""
    async with world.open(Step(Wait(anyio.Event()))) as (hf, script), world.open() as (other, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        look, away = other.store.session, [StoreBusy("away")] * 3

        async def back_later(id: str) -> Any:
            if away and await look(id) and await hf.store.select("request", session=id):
                raise away.pop()
            return await look(id)

        other.store.session = back_later  # type: ignore[method-assign]
        with anyio.fail_after(60):
            assert await other.sessions.interrupt(session)
        assert away == []


class Keeper:
    """Keeps tool output, as slowly as a story wants."""

    def __init__(self, *, ever: bool = True) -> None:
        self.begun = anyio.Event()
        self.gate = anyio.Event()
        self.ever = ever

    async def keep(self, text: str) -> str | None:
        self.begun.set()
        await (self.gate.wait() if self.ever else anyio.sleep_forever())
        return "/kept"


async def interrupted_while_kept(world: World, keeper: Keeper, size: int) -> ToolPart:
    """The call of a tool whose large output is being kept when the work is interrupted."""
    world.settings(permission={"*": "allow"})

    @tool()
    async def large(context: ToolContext) -> str:
        """Answer much."""
        return "x" * size

    async with world.open(Step(Call("large", {}))) as (hf, _):
        hf.tools.register(large)
        force_setattr(inside.engine(hf), "keep", keeper.keep)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await keeper.begun.wait()
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                entry = inside.running(hf, session)
                while not entry.stop:
                    await anyio.lowlevel.checkpoint()
                for _ in range(20):  # Now it waits for the call.
                    await anyio.lowlevel.checkpoint()
                keeper.gate.set()
        page = await hf.sessions.messages(session)
    assert isinstance(page.messages[-1].info, AssistantMessage)
    assert isinstance(page.messages[-1].info.error, AbortedFault)
    (part,) = [part for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    return part


async def test_a_call_that_succeeded_is_not_recorded_as_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tool has returned: however long the output takes to be kept, it is waited for."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.0)
    part = await interrupted_while_kept(world, Keeper(), 100_000)
    assert isinstance(part.state, ToolCompleted)
    assert part.state.metadata["outputPath"] == "/kept"


async def test_output_that_is_never_kept_is_waited_for_within_a_bound(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the record says that it has happened, and that its output is lost."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.0)
    monkeypatch.setattr(tool_calls, "RECORD_S", 0.01)
    part = await interrupted_while_kept(world, Keeper(ever=False), 100_000)
    assert isinstance(part.state, ToolError)
    assert part.state.error == (
        "The tool large broke: what it answered could not be recorded within 0.01 s. "
        "What it did has happened."
    )
    assert part.state.metadata == {"outcome": "failed"}


@pytest.mark.ci
async def test_156_megabytes_are_kept_though_the_work_is_interrupted(world: World) -> None:
    """On the real path: the file and its record, with the patience that an interrupt has."""
    world.settings(permission={"*": "allow"})
    returned = anyio.Event()

    @tool()
    async def large(context: ToolContext) -> str:
        """Answer much."""
        returned.set()
        return "line of output\n" * (156_000_000 // 15)

    async with world.open(Step(Call("large", {}))) as (hf, _):
        hf.tools.register(large)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await returned.wait()
            await anyio.lowlevel.checkpoint()
            await hf.sessions.interrupt(session)
        page = await hf.sessions.messages(session)
    (part,) = [part for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, ToolCompleted)
    assert Path(str(part.state.metadata["outputPath"])).stat().st_size == 156_000_000 // 15 * 15


@pytest.mark.parametrize("how", ["interrupt", "error"])
async def test_work_that_is_being_settled_is_settled_though_its_task_is_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A process that closes ends the tasks of its drains when its patience is over; what is begun is done."""
    begun, gate, done = anyio.Event(), anyio.Event(), anyio.Event()
    plain = drain._settle_all

    async def slow(run: Run, *, error: Fault) -> None:
        begun.set()
        await gate.wait()
        await plain(run, error=error)
        done.set()

    async def broken(run: Run, *_: object, **__: object) -> TurnOutcome:
        raise RuntimeError("no luck")

    monkeypatch.setattr(drain, "_settle_all", slow)
    if how == "error":
        monkeypatch.setattr(drain, "turn", broken)
    steps = [Step(Say("half"), Wait(anyio.Event()))] if how == "interrupt" else []
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            while how == "interrupt" and not script.requests:
                await anyio.lowlevel.checkpoint()
            if how == "interrupt":
                entry = inside.running(hf, session)
                assert entry.run is not None
                entry.run.interrupt()
            await begun.wait()
            inside.cancel_all(hf)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            gate.set()
            await done.wait()
        last = (await hf.sessions.messages(session)).messages[-1].info
    assert isinstance(last, AssistantMessage)
    assert isinstance(last.error, AbortedFault if how == "interrupt" else UnknownFault)


async def test_a_process_that_closes_begins_nothing_again(world: World) -> None:
    """A prompt that waits behind the work that closing ends is left to the next process."""
    async with world.open(Step(Say("half"), Wait(anyio.Event()))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "one")
        with anyio.fail_after(60):
            while not script.requests:
                await anyio.lowlevel.checkpoint()
        await hf.sessions.prompt(session, "two", delivery="queue")
    assert len(script.requests) == 1
    async with world.open(Step(Say("whole"))) as (hf, script):
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
    assert len(script.requests) == 1


class Slow:
    """A Context Source that is not loaded before the test lets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = anyio.Event()
        self.gate = anyio.Event()
        plain = epochs.ensure_epoch

        async def ensure(*arguments: Any) -> Any:
            self.begun.set()
            await self.gate.wait()
            return await plain(*arguments)

        monkeypatch.setattr(epochs, "ensure_epoch", ensure)


async def test_an_interrupt_before_the_first_request_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for is not worked on by a later compaction, nor with the next prompt."""
    slow = Slow(monkeypatch)
    async with world.open(Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "Delete everything")
        with anyio.fail_after(60):
            await slow.begun.wait()
            assert await hf.sessions.interrupt(session)
        page = await hf.sessions.messages(session)
        assert [each.info.role for each in page.messages] == ["user", "assistant"]
        assert isinstance(page.messages[-1].info.error, AbortedFault)
        slow.gate.set()
        with contextlib.suppress(InvalidInput):  # There is nothing to compact.
            await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        assert script.requests == []
        await hf.sessions.process(session, "hello")


async def test_an_interrupt_before_the_claim_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt is admitted and nothing is chosen yet: it is what the user stops."""
    async with world.open() as (hf, script):
        session = await world.session(hf)
        claim, begun, gate = hf.store.claim, anyio.Event(), anyio.Event()

        async def late(*arguments: Any) -> Any:
            begun.set()
            await gate.wait()
            return await claim(*arguments)

        monkeypatch.setattr(hf.store, "claim", late)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                await until(lambda: inside.running(hf, session).stop)
                gate.set()
        page = await hf.sessions.messages(session)
        assert isinstance(page.messages[-1].info.error, AbortedFault)
        assert script.requests == []


async def test_what_queues_behind_interrupted_work_stays_in_the_inbox(world: World) -> None:
    """The interrupt stops what runs, and no more."""
    async with world.open(Step(Say("half"), Wait(anyio.Event())), Step(Say("a")), Step(Say("b"))) as (
        hf,
        script,
    ):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "one")
        await until(lambda: script.requests)
        queued = await hf.sessions.prompt(session, "two", delivery="queue")
        await hf.sessions.interrupt(session)
        assert inside.coordinator(hf).active() == []  # It was woken for the second; that wake is over, too.
        (waiting,) = await hf.store.select("prompt", session=session, mark=Mark.OPEN)
        assert waiting.id == queued.prompt.id
        await hf.sessions.process(session, "three")


async def test_closing_leaves_what_has_not_begun_to_the_next_process(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was acknowledged, and nobody has interrupted it."""
    slow = Slow(monkeypatch)
    async with world.open() as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await slow.begun.wait()
    slow.gate.set()
    async with world.open(Step(Say("ok"))) as (hf, _):
        assert len((await hf.sessions.messages(session)).messages) == 1
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        assert (await hf.sessions.messages(session)).messages[-1].text == "ok"


async def test_a_call_whose_result_could_not_be_stored_is_unknown(world: World) -> None:
    """It ran: to call it interrupted would tell the model that nothing had happened."""
    world.settings(permission={"*": "allow"})
    deed = Deed(ask=False)
    async with world.open(Step(Call("act", {"what": "x"}, id="c"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        commit, failed = hf.store.commit, list[str]()

        async def fails(batch: Batch) -> Any:
            if not failed and any(
                b'"status":"completed"' in getattr(each, "data", b"") for each in batch.changes
            ):
                failed.append("once")
                raise StoreError("the disk is full")
            return await commit(batch)

        hf.store.commit = fails  # type: ignore[method-assign]
        await hf.sessions.process(session, "go", check=False)
        page = await hf.sessions.messages(session)
    assert (deed.done, failed) == (["x"], ["once"])
    (part,) = [part for part in page.messages[-1].parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, ToolError)
    assert (part.state.metadata or {})["outcome"] == "unknown"

"""Runs the calls of one turn side by side, and settles each exactly once.

What must stay true: a call is recorded as running before its tool starts; once a tool has succeeded, its
result is recorded; if a call ends early, its record says how.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from holdfast.errors import LeaseLost, StoreError
from holdfast.log import event
from holdfast.runtime.calls.permission_ask import PermissionAsk
from holdfast.runtime.calls.process_groups import GROUPS
from holdfast.runtime.calls.recorded_call import RecordedCall
from holdfast.runtime.calls.repetition import REFUSED, Row
from holdfast.runtime.calls.step_trees import StepTrees
from holdfast.runtime.calls.tool_context import RunningCall
from holdfast.runtime.calls.tool_hooks import ToolHooks
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.recorder import Recorder
from holdfast.runtime.engine.run import Run
from holdfast.schema.fault import Fault, UnknownData, UnknownFault
from holdfast.schema.file_change import FileChange
from holdfast.schema.file_part import FilePart
from holdfast.schema.ids import Mint, PartID
from holdfast.schema.part import StepStartPart, ToolPart
from holdfast.schema.tool_state import Completed, Ended, ToolCompleted, ToolError, ToolRunning
from holdfast.schema.wire import JsonMap
from holdfast.store.put import put
from holdfast.toolkit.cancellation import is_cancelled
from holdfast.toolkit.output import ToolDenied, ToolParked
from holdfast.tools import execute, structured
from holdfast.tools.execute import Settlement
from holdfast.tools.plain import described

PATIENCE_S = 0.15
"""How long an interrupt waits for a tool to end."""
RECORD_S = 30.0
"""How long it waits for the output of a tool that has ended, or for a change under way: a large output takes
time to store, and a slow disk to write.
"""
LOOP = 3
"""The same call in so many answers in a row, with the same result, is a loop: the user is asked."""
LOOP_MAX = 10
"""So many end the work, unless a rule allows `doom_loop` by name; `*` does not count."""
INTERRUPTED = "The call was interrupted."
INTERRUPTED_AT_WORK = (
    "The call was interrupted while it was at work. Whether {} changed is unknown: look at the actual state "
    "before you do it again."
)
UNKNOWN = (
    "The process that ran this call ended before its result was recorded. Whether it took effect is unknown: "
    "look at the actual state before you do it again."
)


class CallsOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the calls of one answer."""

    count: int
    succeeded: int
    structured_output: JsonMap | None
    """The structured output, once the model has returned it."""
    structured_tries: int
    stopped: bool
    """The user rejected a call without a message: the work ends after this turn."""
    parked: bool
    """A call still waits for the user's reply."""
    looped: Fault | None
    """Why the work ends, if the model is in a loop."""


class ToolCalls:
    """The calls of one turn."""

    def __init__(self, run: Run, turn: PreparedTurn, ask: PermissionAsk, step: StepStartPart | None) -> None:
        self._of = run
        self._turn = turn
        self._ask = ask
        self._recorder = run.recorder
        self._most = run.engine.limits.calls_a_turn_max
        self._group: TaskGroup | None = None
        self._trees = StepTrees(run, run.engine.shadow(turn.session, turn.workspace), step)
        self._noted: list[FileChange] = []
        self.count = 0
        self.succeeded = 0
        self.structured_output: JsonMap | None = None
        self.structured_tries = 0
        self.stopped = False
        self.parked = False
        self.looped: Fault | None = None

    def outcome(self) -> CallsOutcome:
        """Their outcome so far."""
        return CallsOutcome(
            count=self.count,
            succeeded=self.succeeded,
            structured_output=self.structured_output,
            structured_tries=self.structured_tries,
            stopped=self.stopped,
            parked=self.parked,
            looped=self.looped,
        )

    def within(self, group: TaskGroup) -> None:
        """Run the calls in this group."""
        self._group = group

    async def start(self, called: RecordedCall, row: Row) -> None:
        """Start a call. Calls over the limit of a turn are settled at once and not run.

        `row`: how often in a row the model has made it; from the third time on the user is asked first.
        """
        self.count += 1
        self.structured_tries += called.part.tool == structured.NAME
        if self.count > self._most:
            text = f"Too many calls in one turn (at most {self._most}). Call fewer at once."
            await self.settle(called.part, execute.failed(text))
            return
        assert self._group is not None, "the turn gave one"
        # Structured output has a bound of its own.
        looping = Row() if called.part.tool == structured.NAME else row
        self._group.start_soon(self._run, called, looping)

    async def _run(self, called: RecordedCall, row: Row) -> None:
        call = RunningCall(self._of, self._turn, self._ask, called.part, self._trees.asked)
        try:
            settlement = await _run_bounded(call, self._carry_out(call, called, row), self._recorder)
        except ToolParked as parked:
            if self._ask.waits(call.call_id):
                self.parked = True  # Not settled: the call waits for its reply, as its record says.
                return
            settlement = execute.broken(called.part.tool, described(parked))
        except anyio.get_cancelled_exc_class():
            call.cancelled = call.over = True
            self._noted += call.files.changes
            with anyio.CancelScope(shield=True):
                await self.settle(call.part, execute.failed(INTERRUPTED, outcome="interrupted"))
            raise
        call.over = True
        self._noted += call.files.changes
        with anyio.CancelScope(shield=True):
            await self.settle(call.part, settlement)
        if called.part.tool == structured.NAME and settlement.outcome is None:
            self.structured_output = called.part.state.input
        self.stopped = self.stopped or settlement.stops
        self.succeeded += settlement.outcome is None

    async def _carry_out(self, call: RunningCall, called: RecordedCall, row: Row) -> Settlement:
        refused = await self._refuse_loop(call, row)
        if refused is not None:
            return refused
        # It may have been interrupted while the user was asked.
        await anyio.lowlevel.checkpoint_if_cancelled()
        tool = self._turn.toolset.find(called.part.tool)
        if tool is not None and (tool.writes or not tool.repeatable) and called.invalid is None:
            await self._trees.begin(observe=not tool.notes_files)
        return await self._execute(call, called)

    async def _refuse_loop(self, call: RunningCall, row: Row) -> Settlement | None:
        """Why a call that repeats itself is not run again; None when it may be."""
        if row.times < LOOP:
            return None
        part, noted = call.part, {REFUSED: row.times}
        if row.times >= LOOP_MAX and self._ask.allows_anything("doom_loop", part.tool):
            why = (
                f"the model called {part.tool} {row.times} times in a row with the same input, and got the "
                "same answer; the permission `doom_loop: allow` lets it go on"
            )
            self.looped = UnknownFault(data=UnknownData(message=why))
            return execute.denied(f"It was not run: {why}.", stops=True, metadata=noted)
        try:
            await call.ask(
                "doom_loop",
                [part.tool],
                always=[part.tool],
                metadata={"tool": part.tool, "input": part.state.input},
            )
        except ToolDenied as denied:
            text = (
                f"You called {part.tool} {row.times} times in a row with the same input, and it was not run "
                f"again. {denied} Look at what it answered before, and try something else."
            )
            # A model that repeats the call after it has read the refusal would do so for ever.
            return execute.denied(text, stops=denied.stops or row.refused, metadata=noted)
        except (ToolParked, LeaseLost, StoreError):
            raise
        except BaseException as error:  # An `on_ask` program may raise anything.
            if is_cancelled(error):
                raise
            return execute.failed(f"{part.tool} was not run: asking about it broke ({type(error).__name__}).")
        return None

    async def _execute(self, call: RunningCall, called: RecordedCall) -> Settlement:
        part, switches = called.part, self._turn.user.tools or {}
        hooks = ToolHooks(self._of.engine.plugins(self._turn.workspace), part)
        return await execute.execute(
            self._turn.toolset,
            part.tool,
            part.state.input if called.invalid is not None else await hooks.before(part.state.input),
            call,
            invalid=called.invalid,
            closed=lambda name: switches.get(name) is False,
            returned=call.return_,
            shape=hooks.after,
            limits=self._of.output_limits(self._turn.workspace),
            keep=self._of.engine.keep,
        )

    async def observe(self) -> str | None:
        """Record what the calls changed, when all have ended: the id of the tree that they left, if any."""
        self._of.changed_files = self._of.changed_files or bool(self._noted)
        return await self._trees.end(self._noted)

    async def settle(self, part: ToolPart, settlement: Settlement) -> None:
        """Record the settlement of a call."""
        done = settled(part, settlement, now_ms=self._recorder.clock.now_ms(), mint=self._of.engine.mint)
        await self._recorder.commit(put(done), *self._ask.withdrawn(part.call_id, settlement.output))
        event.debug(
            "runtime",
            "call.settled",
            session=part.session_id,
            message=part.message_id,
            call=part.call_id,
            tool=part.tool,
            outcome=settlement.outcome or "completed",
        )


async def _run_bounded(
    call: RunningCall, work: Coroutine[Any, Any, Settlement], recorder: Recorder
) -> Settlement:
    """Run a call in a task of its own: a tool that does not end when it is cancelled is left behind.

    What it has done by then counts; what it does later is not recorded. If the tool has ended, its output is
    waited for, and if it is changing something, the end of that, unless nothing can be recorded any more.
    """
    scope = anyio.CancelScope()

    async def inside() -> Settlement | None:
        with scope:
            return await work
        return None

    task = asyncio.create_task(inside())
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        call.cancelled = True  # First, so that the tool can see why it is cancelled.
        scope.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task}, timeout=PATIENCE_S)
            if (call.returned or call.in_effect) and not recorder.lost:
                await asyncio.wait({task}, timeout=RECORD_S)
        _leave(scope)
        if task.done() and not task.cancelled() and task.exception() is None and task.result() is not None:
            return _given(task)  # It had succeeded.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        if call.returned and not recorder.lost:
            why = f"what it answered could not be recorded within {RECORD_S:g} s. What it did has happened."
            return execute.broken(call.part.tool, why)
        if call.effects and not recorder.lost:
            text = INTERRUPTED_AT_WORK.format(", ".join(dict.fromkeys(call.effects)))
            return execute.failed(text, outcome="unknown")
        raise
    if task.cancelled():  # The tool cancelled itself.
        return execute.broken(call.part.tool, "CancelledError")
    return _given(task)


def _leave(scope: anyio.CancelScope) -> None:
    """Cancel it no more: as long as the task lasts, a scope cancels a task that swallows its cancellation
    again in every round of the loop, and there is no public way to end that.
    """
    handle = getattr(scope, "_cancel_handle", None)
    if handle is not None:
        handle.cancel()


def _given(task: asyncio.Task[Settlement | None]) -> Settlement:
    settlement = task.result()
    assert settlement is not None, "nobody else cancels the scope"
    return settlement


def settled(part: ToolPart, settlement: Settlement, *, now_ms: int, mint: Mint) -> ToolPart:
    """The part of a call that is over. Pure, but for the ids of attachments."""
    state = part.state
    start = state.time.start if isinstance(state, ToolRunning) else now_ms
    noted = (state.metadata or {}) if isinstance(state, ToolRunning) else {}
    before = {key: value for key, value in noted.items() if key != GROUPS}
    if settlement.outcome is None:
        files = [
            FilePart(
                id=PartID(mint.ascending("prt")),
                session_id=part.session_id,
                message_id=part.message_id,
                mime=file.mime,
                url=file.url,
                filename=file.filename,
            )
            for file in settlement.attachments
        ]
        done = ToolCompleted(
            input=state.input,
            output=settlement.output,
            title=settlement.title,
            metadata={**before, **settlement.metadata},
            time=Completed(start=start, end=now_ms),
            attachments=files or None,
        )
        return replace(part, state=done)
    metadata = {**before, **settlement.metadata, "outcome": settlement.outcome}
    if settlement.outcome in ("interrupted", "unknown"):
        metadata["interrupted"] = True
        if isinstance(shown := metadata.get("output"), str):
            # The model is shown this output in the place of the error: it has to say how the call ended.
            metadata["output"] = f"{shown.rstrip()}\n\n({settlement.output})".lstrip()
    error = ToolError(
        input=state.input, error=settlement.output, metadata=metadata, time=Ended(start=start, end=now_ms)
    )
    return replace(part, state=error)

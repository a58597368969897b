"""One request to the model: streams its answer to the end and starts its calls. Retried only before the first
output.

What must stay true: however the stream ends, open texts are closed with what arrived, and every call that was
started is settled (or waits for the user, as its record says).
"""

import random
from contextlib import aclosing
from typing import Final

import anyio
import msgspec

from holdfast.errors import ProviderError
from holdfast.log import event
from holdfast.provider.fault import fault_of
from holdfast.provider.request.events import StepFinish
from holdfast.provider.request.request import Request
from holdfast.runtime.answer import retry
from holdfast.runtime.answer.processor import Processor
from holdfast.runtime.budget import reservations
from holdfast.runtime.calls import repetition
from holdfast.runtime.calls.permission_ask import PermissionAsk
from holdfast.runtime.calls.recorded_call import RecordedCall
from holdfast.runtime.calls.tool_calls import CallsOutcome, ToolCalls
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.schema.fault import APIFault
from holdfast.schema.ids import PartID
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import RetryPart
from holdfast.schema.times import Created
from holdfast.tools import execute, structured

NO_STEPS: Final = "All the steps that this task may take are used up, so no tool can be called any more."


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request to the model."""

    finish: StepFinish | None
    failed: ProviderError | None
    published: bool
    """Whether any output was published."""
    characters: int
    calls: CallsOutcome
    tree: str | None = None
    """The files when the calls had ended, if one of them could write."""


async def ask(run: Run, turn: PreparedTurn, request: Request, message: AssistantMessage) -> Answer:
    """Ask the model. A failure before its first output is retried, within bounds."""
    waited_ms, attempt = 0, 0
    limits = run.engine.limits
    while True:
        attempt += 1
        result = await _once(run, turn, request, message)
        failed = result.failed
        if failed is None or result.published:
            return result
        chance = random.random()  # noqa: S311 - a pause, not a secret
        wait_ms = retry.wait_ms(failed, attempt, waited_ms=waited_ms, random=chance, limits=limits)
        if wait_ms is None:
            return result
        waited_ms += wait_ms
        await _record_retry(run, turn, message, failed, attempt=attempt, wait_ms=wait_ms)
        await anyio.sleep(wait_ms / 1_000)
        status_events.busy(run.engine.feed, run.recorder.session)


async def _record_retry(
    run: Run,
    turn: PreparedTurn,
    message: AssistantMessage,
    error: ProviderError,
    *,
    attempt: int,
    wait_ms: int,
) -> None:
    event.warn(
        "runtime",
        "provider.retry",
        session=message.session_id,
        message=message.id,
        attempt=attempt,
        kind=error.kind,
        status=error.status,
        wait_ms=wait_ms,
    )
    now_ms = run.engine.clock.now_ms()
    status_events.retry(
        run.engine.feed,
        run.recorder.session,
        attempt=attempt,
        message=str(error),
        next_ms=now_ms + wait_ms,
    )
    fault = fault_of(error, turn.model.provider_id)
    if isinstance(fault, APIFault):

        def make(id: PartID) -> RetryPart:
            return RetryPart(
                id=id,
                session_id=message.session_id,
                message_id=message.id,
                attempt=attempt,
                error=fault,
                time=Created(created=now_ms),
            )

        await run.recorder.add_parts(make)


async def _once(run: Run, turn: PreparedTurn, request: Request, message: AssistantMessage) -> Answer:
    settling = ToolCalls(run, turn, PermissionAsk(run, turn), run.step)
    earlier = repetition.calls_since_prompt(turn.history)

    async def call(called: RecordedCall) -> None:
        if turn.last_step and called.part.tool != structured.NAME:
            settling.count += 1
            # Where tools were forbidden, the model calls one all the same: the work ends with this turn.
            stops = request.tool_choice != "auto"
            settling.stopped = settling.stopped or stops
            await settling.settle(called.part, execute.denied(NO_STEPS, stops=stops))
            return
        row = repetition.repeated(earlier, called.part)
        earlier.append(repetition.made(called.part))
        await settling.start(called, row)

    processor = Processor(run.recorder, run.engine.feed, message, call)
    async with anyio.create_task_group() as saving:
        saving.start_soon(processor.keep_saved)
        saving.start_soon(processor.keep_shown)
        try:
            async with anyio.create_task_group() as calls:
                settling.within(calls)
                try:
                    async with aclosing(run.provider(turn.workspace).stream(request)) as events:
                        async for event in events:
                            await processor.take(event)
                    if settling.count and processor.finish is not None:
                        tokens = processor.finish.tokens
                        await reservations.shrink_reservation(
                            run.engine, turn.session, message.id, tokens, turn.model
                        )
                finally:
                    with anyio.CancelScope(shield=True):
                        await processor.end()
        finally:
            with anyio.CancelScope(shield=True):
                tree = await settling.observe()
        saving.cancel_scope.cancel()
    for part in processor.open_calls():  # Their arguments never became complete.
        text = "The model's stream ended before the arguments of this call were complete."
        await settling.settle(part, execute.failed(text, outcome="interrupted"))
    return Answer(
        finish=processor.finish,
        failed=None if processor.failed is None else processor.failed.error,
        published=processor.published,
        characters=processor.characters,
        calls=settling.outcome(),
        tree=tree,
    )

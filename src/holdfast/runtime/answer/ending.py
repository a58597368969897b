"""Closes a turn: usage, cost, the reason of its end, and what comes next."""

from typing import Final

from msgspec.structs import replace

from holdfast.errors import ProviderError
from holdfast.provider.catalog import cost
from holdfast.provider.fault import fault_of
from holdfast.provider.request import size
from holdfast.provider.request.events import StepFinish
from holdfast.runtime.answer import assistant_message, quarantine, structured_answer
from holdfast.runtime.answer.provider_call import Heard
from holdfast.runtime.budget import reservations, settle
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch.prepared_turn import PreparedTurn
from holdfast.runtime.history.work import BROKEN_OFF, TurnOutcome
from holdfast.schema.fault import (
    BudgetFault,
    ContentFilterFault,
    Fault,
    MessageData,
    UnknownData,
    UnknownFault,
)
from holdfast.schema.ids import MessageID
from holdfast.schema.message import AssistantMessage, SystemMessage
from holdfast.schema.part import StepFinishPart
from holdfast.schema.times import Created
from holdfast.store.batch import Put
from holdfast.store.put import put

BROKEN: Final = (
    "The connection to you broke off in the middle of your last message. What arrived of it stands above. "
    "Go on from there; do not repeat it."
)

_BROKEN_KINDS = frozenset({"malformed-stream", "no-finish", "connection", "stall", "timeout"})


async def close(run: Run, ready: PreparedTurn, message: AssistantMessage, heard: Heard) -> TurnOutcome:
    """Record how the turn ended, and say what comes next."""
    failed = heard.processor.failed
    if failed is not None:
        return await _failed(run, ready, message, heard, failed.error)
    finish = heard.processor.finish
    assert finish is not None, "a stream ends with a finish or a failure"
    fault = _filtered(finish) or structured_answer.fault(ready, heard) or heard.settling.looped
    missing = fault is None and structured_answer.is_missing(ready, heard)
    done = replace(message, structured=heard.settling.taken, finish=BROKEN_OFF if missing else None)
    await _finished(run, ready, done, finish, fault, remind=missing)
    if fault is not None:
        status_events.error(run.engine.feed, run.recorder.session, fault)
        return TurnOutcome(next="stop")
    if heard.settling.taken is not None and not heard.settling.parked:
        return TurnOutcome(next="stop")
    return TurnOutcome(next="continue") if missing else _next(heard)


def _next(heard: Heard) -> TurnOutcome:
    settling = heard.settling
    if settling.parked:
        return TurnOutcome(next="park")
    if settling.stopped:
        return TurnOutcome(next="stop")
    if settling.count == 0:
        return TurnOutcome(next="done")
    return TurnOutcome(next="continue", failed=settling.succeeded == 0)


def _filtered(finish: StepFinish) -> Fault | None:
    if finish.reason != "content-filter":
        return None
    return ContentFilterFault(data=MessageData(message="the provider's filter ended the answer"))


async def _finished(
    run: Run,
    ready: PreparedTurn,
    message: AssistantMessage,
    finish: StepFinish,
    fault: Fault | None,
    *,
    remind: bool,
) -> None:
    """The end of the step, the message, the session's totals and the tree's, in one commit."""
    now_ms = run.engine.clock.now_ms()
    spent = cost.cost(finish.tokens, ready.model.prices)
    amount = float(spent.amount)
    # A provider that does not know why it stopped has stopped all the same.
    reason = "other" if finish.reason == BROKEN_OFF else finish.reason

    def compose(ids: Ids) -> list[Put]:
        step = StepFinishPart(
            id=ids.part(),
            session_id=message.session_id,
            message_id=message.id,
            reason=reason,
            cost=amount,
            cost_known=None if spent.known else False,
            tokens=finish.tokens,
        )
        puts = [put(step), put(done)]
        if remind:
            puts.append(put(structured_answer.reminder(ids.message(), message, now_ms)))
        return puts

    done = replace(
        message,
        finish=message.finish or reason,
        error=fault,
        cost=amount,
        tokens=finish.tokens,
        time=replace(message.time, completed=now_ms),
    )
    used = reservations.Used(turn=message.id, tokens=finish.tokens, cost=spent, time_ms=run.turn_ms())
    await settle.settle(run, used, now_ms, compose)


async def _failed(
    run: Run, ready: PreparedTurn, message: AssistantMessage, heard: Heard, error: ProviderError
) -> TurnOutcome:
    """A stream that broke after it had said something is gone on with; any other failure ends the work."""
    now_ms = run.engine.clock.now_ms()
    # No error: what arrived of it stays in the model's view, and the answer is still owed.
    broke = replace(message, finish=BROKEN_OFF, time=replace(message.time, completed=now_ms))
    spent_ms, said = run.turn_ms(), heard.processor.said
    tokens = round(heard.processor.characters / size.CHARACTERS_A_TOKEN)
    await reservations.broken_off(run.engine, ready.session, message.id, spent_ms, sent=said, said=tokens)
    if said and error.retryable and error.kind in _BROKEN_KINDS:
        return await _broke_off(run, message, broke, heard, now_ms)
    if not said and await quarantine.take_out(run, ready, broke, error):
        return TurnOutcome(next="continue")
    fault = fault_of(error, ready.model.provider_id)
    if error.kind == "context-overflow" and not heard.processor.said and ready.compacts:
        await run.recorder.commit(put(broke))
        return TurnOutcome(next="stop", overflowed=True)
    failed = put(assistant_message.failed(message, fault, now_ms))
    if not await quarantine.take_back(run, ready, error, failed):
        await run.recorder.commit(failed)
    status_events.error(run.engine.feed, run.recorder.session, fault)
    return TurnOutcome(next="stop")


async def _broke_off(
    run: Run, message: AssistantMessage, broke: AssistantMessage, heard: Heard, now_ms: int
) -> TurnOutcome:
    """Go on with an answer whose stream broke off, unless too many in a row have."""
    if heard.settling.parked:
        await run.recorder.commit(put(broke))
        return TurnOutcome(next="park")
    run.breaks += 1
    if run.breaks > run.engine.limits.malformed_max:
        # An answer that failed is not shown to the model, so the model is told nothing of it either.
        told = f"the provider's stream broke off {run.breaks} times in a row"
        fault = UnknownFault(data=UnknownData(message=told))
        await run.recorder.commit(put(assistant_message.failed(message, fault, now_ms)))
        status_events.error(run.engine.feed, run.recorder.session, fault)
        return TurnOutcome(next="stop")
    if heard.settling.count == 0:
        await run.recorder.add_message(lambda id: broken(id, message, now_ms), put(broke))
    else:
        await run.recorder.commit(put(broke))
    return TurnOutcome(next="continue", malformed=True)


def broken(id: MessageID, message: AssistantMessage, now_ms: int) -> SystemMessage:
    """What the model is told when its answer was cut off: the history must not end with its own words."""
    return SystemMessage(id=id, session_id=message.session_id, time=Created(created=now_ms), text=BROKEN)


async def refuse(run: Run, message: AssistantMessage, why: str) -> TurnOutcome:
    """End a turn that may not begin: the tree has spent what it may."""
    fault = BudgetFault(data=MessageData(message=why))
    await run.recorder.commit(put(assistant_message.failed(message, fault, run.engine.clock.now_ms())))
    status_events.error(run.engine.feed, run.recorder.session, fault)
    return TurnOutcome(next="stop")


async def give_up(run: Run, fault: Fault) -> None:
    """Put an error on the last answer of the session: the work ends with it."""
    history = await run.history.read()
    last = next((each.info for each in reversed(history) if isinstance(each.info, AssistantMessage)), None)
    if last is not None:
        ended_ms = last.time.completed or run.engine.clock.now_ms()
        await run.recorder.commit(put(assistant_message.failed(last, fault, ended_ms)))
    status_events.error(run.engine.feed, run.recorder.session, fault)

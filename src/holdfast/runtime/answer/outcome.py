"""How a turn ended: how its answer is closed, and what comes next."""

from typing import Literal

import msgspec

from holdfast.errors import ProviderError
from holdfast.provider.catalog import cost
from holdfast.provider.fault import fault_of
from holdfast.provider.request import size
from holdfast.provider.request.events import StepFinish
from holdfast.runtime.answer import ending, quarantine, structured_answer
from holdfast.runtime.answer.ending import Ending
from holdfast.runtime.answer.provider_call import Answer
from holdfast.runtime.budget import reservations
from holdfast.runtime.budget.spending import Used
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import work
from holdfast.schema.fault import (
    BudgetFault,
    ContentFilterFault,
    Fault,
    MessageData,
    UnknownData,
    UnknownFault,
)
from holdfast.schema.message import AssistantMessage, MessageWithParts

_BROKEN_KINDS = frozenset({"malformed-stream", "no-finish", "connection", "stall", "timeout"})


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What comes next.

    continue: the model is owed the results of its calls, or its stream broke and it is asked again; done: it
    has answered; stop: the user, a rule or an error ended the work; park: a call waits for the user.
    """

    next: Literal["continue", "done", "stop", "park"]
    failed: bool = False
    """Whether it made calls and none of them succeeded."""
    compacted: bool = False
    """Whether it was a compaction instead of a turn of the work."""
    overflowed: bool = False
    """Whether the provider found the request too long: it has to be compacted before another try."""
    malformed: bool = False
    """Whether the stream broke off after its first output: the next turn begins from the store."""


async def close(run: Run, turn: PreparedTurn, message: AssistantMessage, answer: Answer) -> TurnOutcome:
    """Record how the answer of a turn ended, and return what comes next."""
    failed = answer.failed
    if failed is not None:
        return await _close_failed(run, turn, message, answer, failed)
    finish = answer.finish
    assert finish is not None, "a stream ends with a finish or a failure"
    fault = _filtered(finish) or structured_answer.fault(turn, answer) or answer.calls.looped
    missing = fault is None and structured_answer.is_missing(turn, answer)
    how = _finished(run, turn, message, answer, fault, missing=missing)
    if fault is not None or (answer.calls.structured_output is not None and not answer.calls.parked):
        ended = TurnOutcome(next="stop")
    else:
        ended = TurnOutcome(next="continue") if missing else _next(answer)
    if ended.next in ("continue", "done") and not missing and how.used is not None:
        ending.end_later(run, message, how, how.used)
    else:
        await ending.end(run, _alone(message), how)
    return ended


def _alone(message: AssistantMessage) -> MessageWithParts:
    """The message without its parts: the processor and the calls have closed those."""
    return MessageWithParts(message, ())


def _next(answer: Answer) -> TurnOutcome:
    calls = answer.calls
    if calls.parked:
        return TurnOutcome(next="park")
    if calls.stopped:
        return TurnOutcome(next="stop")
    if calls.count == 0:
        return TurnOutcome(next="done")
    return TurnOutcome(next="continue", failed=calls.succeeded == 0)


def _filtered(finish: StepFinish) -> Fault | None:
    if finish.reason != "content-filter":
        return None
    return ContentFilterFault(data=MessageData(message="the provider's filter ended the answer"))


def _finished(
    run: Run,
    turn: PreparedTurn,
    message: AssistantMessage,
    answer: Answer,
    fault: Fault | None,
    *,
    missing: bool,
) -> Ending:
    finish = answer.finish
    assert finish is not None
    # A provider that gives no known reason has stopped all the same.
    reason = "other" if finish.reason == work.BROKEN_OFF else finish.reason
    spent = cost.cost(finish.tokens, turn.model.prices)
    return Ending(
        finish=work.BROKEN_OFF if missing else reason,
        error=fault,
        structured=answer.calls.structured_output,
        used=Used(turn=message.id, tokens=finish.tokens, cost=spent, time_ms=run.turn_ms()),
        reason=reason,
        tree=answer.tree,
        note=structured_answer.REMINDER if missing else None,
    )


async def _close_failed(
    run: Run, turn: PreparedTurn, message: AssistantMessage, answer: Answer, error: ProviderError
) -> TurnOutcome:
    """Continue after a stream that broke off after its first output; any other failure ends the work."""
    spent_ms, published = run.turn_ms(), answer.published
    tokens = round(answer.characters / size.CHARACTERS_A_TOKEN)
    await reservations.settle_unfinished(
        run.engine, turn.session, message.id, spent_ms, sent=published, answer_tokens=tokens
    )
    if published and error.retryable and error.kind in _BROKEN_KINDS:
        return await _continue_broken(run, message, answer)
    if not published and await quarantine.take_out(run, turn, message, error):
        return TurnOutcome(next="continue")
    if error.kind == "context-overflow" and not published and turn.compacts:
        await ending.end(run, _alone(message), ending.broken_off())
        return TurnOutcome(next="stop", overflowed=True)
    fault = fault_of(error, turn.model.provider_id)
    back = await quarantine.take_back(run, turn, error)
    await ending.end(run, _alone(message), ending.failed(fault), before=lambda _: back)
    return TurnOutcome(next="stop")


async def _continue_broken(run: Run, message: AssistantMessage, answer: Answer) -> TurnOutcome:
    """Continue after an answer whose stream broke off, unless too many in a row have."""
    if answer.calls.parked:
        await ending.end(run, _alone(message), ending.broken_off())
        return TurnOutcome(next="park")
    run.breaks += 1
    if run.breaks > run.engine.limits.malformed_max:
        # A failed answer is not in the model view, so no system message refers to it either.
        why = f"the provider's stream broke off {run.breaks} times in a row"
        await ending.end(run, _alone(message), ending.failed(UnknownFault(data=UnknownData(message=why))))
        return TurnOutcome(next="stop")
    # After calls the model view ends with their results, which are not the model's own text.
    note = ending.BROKEN if answer.calls.count == 0 else None
    await ending.end(run, _alone(message), ending.broken_off(note))
    return TurnOutcome(next="continue", malformed=True)


async def refuse(run: Run, message: AssistantMessage, why: str) -> TurnOutcome:
    """End a turn that may not begin: the tree of sessions has spent its budget."""
    await ending.end(run, _alone(message), ending.failed(BudgetFault(data=MessageData(message=why))))
    return TurnOutcome(next="stop")

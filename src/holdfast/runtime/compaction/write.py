"""Ends an attempt to compact: makes it true in one commit, or keeps why it came to nothing."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.provider.catalog import cost
from holdfast.runtime.answer import assistant_message
from holdfast.runtime.budget import reservations, settle
from holdfast.runtime.compaction import carry, wording
from holdfast.runtime.compaction.summarise import Refusal, Written
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch.prepared_turn import PreparedTurn
from holdfast.runtime.history import work
from holdfast.runtime.history.carried import Carried
from holdfast.runtime.history.model_view import CONTINUED, RESTS
from holdfast.runtime.history.work import TurnOutcome
from holdfast.schema import usage
from holdfast.schema.fault import Fault
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import CompactionPart, StepFinishPart, TextPart
from holdfast.schema.session import Session
from holdfast.schema.times import Created, Span
from holdfast.store.batch import Put
from holdfast.store.put import put


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that succeeded, not yet written."""

    info: UserMessage
    part: CompactionPart
    message: AssistantMessage
    tail: Sequence[MessageWithParts]
    carried: Carried
    written: Written


async def finish(run: Run, result: Result, *, goes_on: UserMessage | None, rests: bool) -> None:
    """Make the compaction true: summary, carried text, tail, totals and what follows, in one commit.

    `goes_on` is the prompt that the work goes on with: by itself, or, where it `rests`, when it is resumed.
    """
    now_ms = run.engine.clock.now_ms()
    message, written = result.message, result.written

    def compose(ids: Ids) -> list[Put]:
        return [
            *_summary(ids, result, now_ms),
            *(
                []
                if goes_on is None
                else _continuing(
                    ids,
                    goes_on,
                    result.part,
                    now_ms,
                    had_files="[attached: " in result.carried.request,
                    rests=rests,
                )
            ),
        ]

    used = reservations.Used(turn=message.id, tokens=written.tokens, cost=written.cost, time_ms=run.turn_ms())
    await settle.settle(run, used, now_ms, compose, change=not_compacting)


def not_compacting(session: Session) -> Session:
    """The session with no compaction under way."""
    return replace(session, time=replace(session.time, compacting=None))


def _summary(ids: Ids, result: Result, now_ms: int) -> list[Put]:
    message, written, carried = result.message, result.written, result.carried
    amount = float(written.cost.amount)
    tail = result.tail[0].info.id if result.tail else None
    done = replace(
        message,
        finish="stop",
        cost=amount,
        tokens=written.tokens,
        time=replace(message.time, completed=now_ms),
    )
    kept = TextPart(
        id=ids.part(),
        session_id=message.session_id,
        message_id=result.info.id,
        text=carry.text(carried),
        synthetic=True,
        metadata=carried.metadata(),
    )
    text = TextPart(
        id=ids.part(),
        session_id=message.session_id,
        message_id=message.id,
        text=written.text,
        time=Span(start=now_ms, end=now_ms),
    )
    step = StepFinishPart(
        id=ids.part(),
        session_id=message.session_id,
        message_id=message.id,
        reason="stop",
        cost=amount,
        cost_known=None if written.cost.known else False,
        tokens=written.tokens,
    )
    parts = [put(part) for part in (replace(result.part, tail_start_id=tail), kept, text, step)]
    return [*parts, put(done)]


def _continuing(
    ids: Ids, user: UserMessage, part: CompactionPart, now_ms: int, *, had_files: bool, rests: bool
) -> list[Put]:
    """A prompt of ours that goes on with the person's: same agent, same model, same wishes."""
    info = replace(
        user, id=ids.message(), time=Created(created=now_ms), system=None, summary=None, extra=None
    )
    # The tail after an overflow holds no media: what the request came with was left out.
    lost = part.overflow and had_files
    words = f"{wording.TOO_LARGE}\n\n{wording.CONTINUE}" if lost else wording.CONTINUE
    text = TextPart(
        id=ids.part(),
        session_id=info.session_id,
        message_id=info.id,
        text=words,
        synthetic=True,
        metadata={CONTINUED: True, **({RESTS: True} if rests else {})},
    )
    return [put(info), put(text)]


async def fail(run: Run, message: AssistantMessage, refusal: Refusal, *, goes_on: bool, asked: bool) -> None:
    """The attempt came to nothing: its message holds the reason and what it took; the old boundary counts.

    `goes_on`: the work does not end with it, and the records have to tell. Then it is an error only for
    somebody who `asked` for it.
    """
    now_ms = run.engine.clock.now_ms()
    spent = cost.cost(refusal.tokens, None if refusal.model is None else refusal.model.prices)
    over = replace(
        message,
        error=refusal.fault,
        finish=work.BROKEN_OFF if goes_on else "error",
        cost=float(spent.amount),
        tokens=refusal.tokens,
        time=replace(message.time, completed=now_ms),
    )

    def compose(ids: Ids) -> list[Put]:
        if refusal.tokens == usage.ZERO:
            return [put(over)]
        step = StepFinishPart(
            id=ids.part(),
            session_id=message.session_id,
            message_id=message.id,
            reason="error",
            cost=float(spent.amount),
            cost_known=None if spent.known else False,
            tokens=refusal.tokens,
        )
        return [put(step), put(over)]

    if refusal.tokens == usage.ZERO:
        await settle.change(run, compose, not_compacting)
    else:
        used = reservations.Used(turn=message.id, tokens=refusal.tokens, cost=spent, time_ms=run.turn_ms())
        await settle.settle(run, used, now_ms, compose, change=not_compacting)
    if asked or not goes_on:
        status_events.error(run.engine.feed, run.recorder.session, refusal.fault)


async def stop(run: Run, ready: PreparedTurn, fault: Fault) -> TurnOutcome:
    """The turn cannot be taken: an answer that never began holds the reason."""
    now_ms = run.engine.clock.now_ms()

    await run.recorder.add_message(
        lambda id: assistant_message.failed(assistant_message.begun(ready, id, now_ms), fault, now_ms)
    )
    status_events.error(run.engine.feed, run.recorder.session, fault)
    return TurnOutcome(next="stop")

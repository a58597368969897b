"""Writes the end of an attempt to compact: its result in one commit, or why it failed."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.provider.catalog import cost
from holdfast.runtime.answer import assistant_message, ending
from holdfast.runtime.answer.ending import Ending
from holdfast.runtime.answer.outcome import TurnOutcome
from holdfast.runtime.budget.spending import Used
from holdfast.runtime.compaction import carry, wording
from holdfast.runtime.compaction.summarise import Refusal, Written
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import work
from holdfast.runtime.history.carried import Carried
from holdfast.runtime.history.model_view import CONTINUED, RESTS
from holdfast.schema import usage
from holdfast.schema.fault import Fault
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import CompactionPart, TextPart
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
    """Write the compaction: summary, carried text, tail, totals and what follows, in one commit.

    `goes_on`: the prompt that the work continues with; by itself, or, if it `rests`, when it is resumed.
    """
    now_ms = run.engine.clock.now_ms()
    message, written = result.message, result.written
    had_files = "[attached: " in result.carried.request

    def following(ids: Ids) -> list[Put]:
        if goes_on is None:
            return []
        return _continuing(ids, goes_on, result.part, now_ms, had_files=had_files, rests=rests)

    used = Used(turn=message.id, tokens=written.tokens, cost=written.cost, time_ms=run.turn_ms())
    await ending.end(
        run,
        MessageWithParts(message, ()),
        Ending(finish="stop", used=used, reason="stop"),
        before=lambda ids: _summary(ids, result, now_ms),
        after=following,
        edit=not_compacting,
    )


def not_compacting(session: Session) -> Session:
    """The session with no compaction under way."""
    return replace(session, time=replace(session.time, compacting=None))


def _summary(ids: Ids, result: Result, now_ms: int) -> list[Put]:
    message, carried = result.message, result.carried
    tail = result.tail[0].info.id if result.tail else None
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
        text=result.written.text,
        time=Span(start=now_ms, end=now_ms),
    )
    return [put(part) for part in (replace(result.part, tail_start_id=tail), kept, text)]


def _continuing(
    ids: Ids, user: UserMessage, part: CompactionPart, now_ms: int, *, had_files: bool, rests: bool
) -> list[Put]:
    """A prompt of ours that continues the user's: same agent, same model, same options."""
    info = replace(
        user, id=ids.message(), time=Created(created=now_ms), system=None, summary=None, extra=None
    )
    # The tail after an overflow holds no media: the request's files were left out.
    lost = part.overflow and had_files
    instruction = f"{wording.TOO_LARGE}\n\n{wording.CONTINUE}" if lost else wording.CONTINUE
    text = TextPart(
        id=ids.part(),
        session_id=info.session_id,
        message_id=info.id,
        text=instruction,
        synthetic=True,
        metadata={CONTINUED: True, **({RESTS: True} if rests else {})},
    )
    return [put(info), put(text)]


async def fail(run: Run, message: AssistantMessage, refusal: Refusal, *, goes_on: bool, asked: bool) -> None:
    """Write a failed attempt: its message holds the reason and the usage; the earlier compaction stays in
    force.

    `goes_on`: the work does not end with it, and the records say so. Then it is an error only for a user who
    `asked` for it.
    """
    spent = cost.cost(refusal.tokens, None if refusal.model is None else refusal.model.prices)
    used = Used(turn=message.id, tokens=refusal.tokens, cost=spent, time_ms=run.turn_ms())
    how = ending.failed(refusal.fault, None if refusal.tokens == usage.ZERO else used)
    await ending.end(
        run,
        MessageWithParts(message, ()),
        replace(how, finish=work.BROKEN_OFF) if goes_on else how,
        edit=not_compacting,
        publish=asked or not goes_on,
    )


async def stop(run: Run, turn: PreparedTurn, fault: Fault) -> TurnOutcome:
    """End the work without a turn: an answer that never began holds the reason."""
    await ending.end_unbegun(run, lambda id, now_ms: assistant_message.begun(turn, id, now_ms), fault)
    return TurnOutcome(next="stop")

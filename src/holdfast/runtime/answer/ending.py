"""How an answer ends: one pure function from the open answer to its records, and one writer.

What must stay true: an answer ends with no text open and no call unsettled, but for calls that wait for the
user or are run again; its step, its cost, its reason and its error are one commit; an error is stored before
it is published. `tests/stories/test_endings.py` has a row for every way.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.log import event
from holdfast.runtime.answer import structured_answer
from holdfast.runtime.budget import settle
from holdfast.runtime.budget.spending import Used
from holdfast.runtime.calls.tool_calls import INTERRUPTED, UNKNOWN, settled
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.recorder import Deferred, Ids, Made, nothing
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import files_touched, work
from holdfast.schema.fault import AbortedFault, APIFault, Fault
from holdfast.schema.ids import MessageID, Mint, SessionID
from holdfast.schema.message import AssistantMessage, Message, MessageWithParts, SystemMessage
from holdfast.schema.part import Part, ReasoningPart, StepFinishPart, TextPart, ToolPart
from holdfast.schema.session import Session
from holdfast.schema.times import Created, Span
from holdfast.schema.tool_state import ToolPending
from holdfast.schema.wire import JsonMap
from holdfast.store.batch import Change, Put
from holdfast.store.put import put
from holdfast.tools import execute
from holdfast.tools.execute import Settlement

BROKEN: Final = (
    "The connection to you broke off in the middle of your last message. What arrived of it stands above. "
    "Go on from there; do not repeat it."
)

Settles = Callable[[ToolPart], Settlement | None]
"""How a call that is still open is settled; None leaves it open."""


def as_interrupted(call: ToolPart) -> Settlement:
    """For a call that this process has just stopped."""
    return execute.failed(INTERRUPTED, outcome="interrupted")


def as_left(call: ToolPart) -> Settlement:
    """For a call that a dead runner left: if it had begun, what it did is unknown."""
    if isinstance(call.state, ToolPending):
        return as_interrupted(call)
    files = files_touched.named_in(call)
    named = f" It may have changed {', '.join(files)}." if files else ""
    return execute.failed(UNKNOWN + named, outcome="unknown")


def left_open(call: ToolPart) -> None:
    """For an answer whose calls wait for the user, or are settled already."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer ends. What is None stays as the answer has it."""

    finish: str | None = None
    error: Fault | None = None
    structured: JsonMap | None = None
    used: Used | None = None
    """What the provider counted: recorded as a step of the answer and added to the totals."""
    reason: str = "error"
    """Why that step ended."""
    tree: str | None = None
    """The files when that step ended."""
    note: str | None = None
    """A system message that follows: the model view must not end with the model's own text."""
    settles: Settles = left_open


def failed(fault: Fault, used: Used | None = None) -> Ending:
    """An answer that failed, or after which the work ends with an error."""
    return Ending(finish="error", error=fault, used=used)


def broken_off(note: str | None = None) -> Ending:
    """An answer that does not end the work: what arrived stays in the model view, an answer is owed."""
    return Ending(finish=work.BROKEN_OFF, note=note)


def cut_off(answer: MessageWithParts, settles: Settles, error: Fault | None = None) -> Ending:
    """For an answer that nobody goes on writing: what it did counts, and what it owes is still owed."""
    info = answer.info
    assert isinstance(info, AssistantMessage)
    calls = work.has_calls(answer)
    return Ending(
        finish=info.finish or ("tool-calls" if calls else work.BROKEN_OFF),
        error=error,
        structured=structured_answer.output_in(answer),
        note=BROKEN if error is None and not calls else None,
        settles=settles,
    )


def closed(answer: MessageWithParts, ending: Ending, ids: Ids, now_ms: int, mint: Mint) -> list[Put]:
    """The records of an answer that ends: texts, calls, step, message, and the system message after it."""
    parts: list[Part] = list(_closed_texts(answer, now_ms))
    parts += [
        settled(call, settlement, now_ms=now_ms, mint=mint)
        for call in work.unsettled(answer)
        if (settlement := ending.settles(call)) is not None
    ]
    if ending.used is not None:
        parts.append(_step(answer.info.session_id, ending.used, ending, ids))
    puts = [put(part) for part in parts]
    info = ended(answer, ending, now_ms)
    if info != answer.info:
        puts.append(put(info))
    if ending.note is not None:
        now = Created(created=now_ms)
        note = SystemMessage(id=ids.message(), session_id=info.session_id, time=now, text=ending.note)
        puts.append(put(note))
    return puts


def ended(answer: MessageWithParts, ending: Ending, now_ms: int) -> AssistantMessage:
    """The message of an answer that ends."""
    info = answer.info
    assert isinstance(info, AssistantMessage)
    used = ending.used
    return replace(
        info,
        finish=info.finish if ending.finish is None else ending.finish,
        error=info.error if ending.error is None else ending.error,
        structured=info.structured if ending.structured is None else ending.structured,
        cost=info.cost if used is None else float(used.cost.amount),
        tokens=info.tokens if used is None else used.tokens,
        time=replace(info.time, completed=info.time.completed or now_ms),
    )


def _closed_texts(answer: MessageWithParts, now_ms: int) -> list[TextPart | ReasoningPart]:
    """The open texts, ended as they are."""
    return [
        replace(part, time=Span(start=part.time.start, end=now_ms))
        for part in answer.parts
        if isinstance(part, TextPart | ReasoningPart) and part.time is not None and part.time.end is None
    ]


def _step(session: SessionID, used: Used, ending: Ending, ids: Ids) -> StepFinishPart:
    return StepFinishPart(
        id=ids.part(),
        session_id=session,
        message_id=MessageID(used.turn),
        reason=ending.reason,
        snapshot=ending.tree,
        cost=float(used.cost.amount),
        cost_known=None if used.cost.known else False,
        tokens=used.tokens,
    )


async def end(
    run: Run,
    answer: MessageWithParts,
    ending: Ending,
    *,
    before: Made = nothing,
    after: Made = nothing,
    edit: Callable[[Session], Session] | None = None,
    publish: bool = True,
) -> AssistantMessage:
    """Write the end of an answer, in one commit with what comes `before` and `after` it and an `edit` of the
    session; then publish its error.
    """
    now_ms = run.engine.clock.now_ms()

    def compose(ids: Ids) -> list[Change]:
        return [*before(ids), *closed(answer, ending, ids, now_ms, run.engine.mint), *after(ids)]

    if ending.used is not None:
        await settle.settle(run, ending.used, now_ms, compose, change=edit or (lambda session: session))
    elif edit is not None:
        await settle.change(run, compose, edit)
    else:
        await run.recorder.write(compose)
    _log_end(answer.info, ending)
    if ending.error is not None and publish:
        status_events.error(run.engine.feed, run.recorder.session, ending.error)
    return ended(answer, ending, now_ms)


def end_later(run: Run, message: AssistantMessage, ending: Ending, used: Used) -> None:
    """Let the end of an answer be written together with what follows it (see `Recorder.defer`).

    Only for an answer whose parts are stored and closed, and that ends without an error or a note.
    """
    now_ms = run.engine.clock.now_ms()
    answer = MessageWithParts(message, ())

    async def write(also: Made, release: bool) -> None:  # noqa: FBT001 - as `Deferred` calls it
        def compose(ids: Ids) -> list[Change]:
            return [*closed(answer, ending, ids, now_ms, run.engine.mint), *also(ids)]

        await settle.settle(run, used, now_ms, compose, release=release)
        _log_end(message, ending)

    step = _step(message.session_id, used, ending, Ids(run.engine.mint.ascending))
    run.recorder.defer(Deferred(MessageWithParts(ended(answer, ending, now_ms), (step,)), write))


def _log_end(info: Message, ending: Ending) -> None:
    """Log how an answer ended: with what, and what it took. Not the text of its error, which may quote it."""
    used, fault = ending.used, ending.error
    log = event.info if fault is None or isinstance(fault, AbortedFault) else event.warn
    log(
        "runtime",
        "turn.end",
        session=info.session_id,
        message=info.id,
        finish=ending.finish,
        error=None if fault is None else fault.__struct_config__.tag,
        status=fault.data.status_code if isinstance(fault, APIFault) else None,
        input=None if used is None else used.tokens.input,
        cached=None if used is None else used.tokens.cache.read,
        written=None if used is None else used.tokens.cache.write,
        output=None if used is None else used.tokens.output,
        reasoning=None if used is None else used.tokens.reasoning,
        cost=None if used is None else str(used.cost.amount) if used.cost.known else "unknown",
        ms=None if used is None else used.time_ms,
    )


async def give_up(run: Run, fault: Fault) -> None:
    """End the work: write an error to the session's last answer."""
    await run.recorder.flush()
    last = work.last_answer(await run.history.read())
    if last is None:
        status_events.error(run.engine.feed, run.recorder.session, fault)
    else:
        await end(run, last, failed(fault))


async def end_unbegun(
    run: Run, begin: Callable[[MessageID, int], AssistantMessage], fault: Fault, *, publish: bool = True
) -> None:
    """Write an answer that never began, to hold the error."""
    now_ms = run.engine.clock.now_ms()

    def make(id: MessageID) -> AssistantMessage:
        return ended(MessageWithParts(begin(id, now_ms), ()), failed(fault), now_ms)

    _log_end(await run.recorder.add_message(make), failed(fault))
    if publish:
        status_events.error(run.engine.feed, run.recorder.session, fault)

"""Compacts a session: a summary replaces the beginning of the model view.

What must stay true: everything that a compaction changes is one commit, so an attempt that fails or is cut
off changes nothing; it makes the request shorter and brings it under its target, or ends with an error that
says what cannot shrink; it is tried at most twice before an answer comes, whatever requested it.
"""

from typing import NamedTuple

from msgspec.structs import replace

from holdfast.errors import NotFound
from holdfast.log import event
from holdfast.plugins.hooks import COMPACTION_AUTOCONTINUE, AutoContinue, Compacted
from holdfast.runtime.answer import assistant_message
from holdfast.runtime.answer.outcome import TurnOutcome
from holdfast.runtime.budget import settle
from holdfast.runtime.calls import repetition
from holdfast.runtime.compaction import carry, current_request, fit, measure, summarise, write
from holdfast.runtime.compaction.divide import Divided
from holdfast.runtime.compaction.measure import ATTEMPTS_MAX
from holdfast.runtime.compaction.summarise import AGENT, Refusal, Written
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.carried import Carried, carried_before
from holdfast.schema.fault import ContextOverflowFault, Fault
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import CompactionPart
from holdfast.schema.session_lists import Todo
from holdfast.schema.times import Created
from holdfast.store.batch import Put
from holdfast.store.put import put


async def on_request(run: Run, turn: PreparedTurn, asked: MessageWithParts) -> TurnOutcome:
    """Compact because the user requested it."""
    part = model_view.compaction_of(asked)
    assert isinstance(asked.info, UserMessage)
    assert part is not None, "it was found by this part"
    return await _attempt(run, turn, asked.info, part)


async def automatic(run: Run, turn: PreparedTurn, *, overflow: bool = False) -> TurnOutcome:
    """Compact because the next request is too long, by our measure or by the provider's (`overflow`)."""
    tried = measure.attempts(turn.history)
    if tried >= ATTEMPTS_MAX:
        why = f"the request is still too long after {ATTEMPTS_MAX} compactions"
        shown = model_view.project(turn.history)
        fault = fit.overflow(f"{why}: {fit.items(turn, Carried(), shown)}")
        return await write.stop(run, turn, fault)
    user = turn.user
    now = Created(created=run.engine.clock.now_ms())
    made: list[tuple[UserMessage, CompactionPart]] = []

    def compose(ids: Ids) -> list[Put]:
        info = UserMessage(
            id=ids.message(), session_id=turn.session.id, time=now, agent=user.agent, model=user.model
        )
        part = CompactionPart(
            id=ids.part(),
            session_id=info.session_id,
            message_id=info.id,
            auto=True,
            overflow=overflow or None,
            attempt=tried + 1,
        )
        made.append((info, part))
        return [put(info), put(part)]

    await run.recorder.write(compose)
    return await _attempt(run, turn, *made[-1])


async def _attempt(run: Run, turn: PreparedTurn, info: UserMessage, part: CompactionPart) -> TurnOutcome:
    """Make one attempt."""
    run.begin_turn()
    message = await _open_summary(run, turn, info)
    todos = await _todos(run)
    # Work that a requested compaction interrupted continues as well; or can be continued, if it rests.
    owed = part.auto or turn.owed or turn.rests
    conversation = model_view.conversation(turn.history)
    whole = _cut(turn, Divided(conversation, []), todos)
    cut = _cut(turn, fit.divided(turn, conversation, todos, overflowed=bool(part.overflow)), todos)
    if part.attempt == ATTEMPTS_MAX or _useless(turn, cut, "", goes_on=owed) is not None:
        cut = whole  # Rather give up the tail than the work.
    cut, written = await _summarise(run, turn, message, cut, whole, goes_on=owed)
    if isinstance(written, Refusal):
        return await _fail(run, turn, part, message, written)
    goes_on = owed and await _ask_to_continue(run, turn, overflow=bool(part.overflow))
    result = write.Result(
        info=info, part=part, message=message, tail=cut.divided.tail, carried=cut.carried, written=written
    )
    await write.finish(run, result, goes_on=turn.user if goes_on else None, rests=turn.rests)
    status_events.compacted(run.engine.feed, run.recorder.session)
    _log("compaction.done", part, message)
    if not owed:
        return TurnOutcome(next="done", compacted=True)
    return TurnOutcome(next="continue" if goes_on and not turn.rests else "stop", compacted=True)


def _log(name: str, part: CompactionPart, message: AssistantMessage, why: Fault | None = None) -> None:
    log = event.info if why is None else event.warn
    log(
        "runtime",
        name,
        session=message.session_id,
        message=message.id,
        attempt=part.attempt,
        auto=part.auto,
        overflow=part.overflow,
        error=None if why is None else why.__struct_config__.tag,
    )


class _Cut(NamedTuple):
    """A history, divided, and what is carried over when this head is summarised."""

    divided: Divided
    carried: Carried


def _cut(turn: PreparedTurn, divided: Divided, todos: list[Todo]) -> _Cut:
    carried = carry.carry(
        carried_before(turn.history),
        current_request.current(turn.history),
        divided.head,
        todos,
        steps=work.steps_since_prompt(turn.history),
        calls=repetition.carried(turn.history),
        ratios=measure.ratios(turn.history),
    )
    return _Cut(divided, carried)


def _useless(turn: PreparedTurn, cut: _Cut, summary: str, *, goes_on: bool) -> ContextOverflowFault | None:
    return fit.useless(turn, cut.divided, cut.carried, summary, goes_on=goes_on)


async def _summarise(
    run: Run, turn: PreparedTurn, message: AssistantMessage, cut: _Cut, whole: _Cut, *, goes_on: bool
) -> tuple[_Cut, Written | Refusal]:
    """Write a summary that helps, or why there is none; for the cut `whole` if the tail was given up."""
    if not cut.divided.head:
        what = fit.items(turn, cut.carried, cut.divided.tail)
        return cut, Refusal(fault=fit.overflow(f"there is nothing to summarise; {what}"))
    fault = _useless(turn, cut, "", goes_on=goes_on)
    if fault is not None:
        return cut, Refusal(fault=fault)  # No summary, however short, would help.

    def gives_way(summary: str) -> bool:
        kept, gone = (_useless(turn, each, summary, goes_on=goes_on) for each in (cut, whole))
        return kept is not None and gone is None

    written = await summarise.write(run, turn, message, cut.divided, gives_way=gives_way)
    if isinstance(written, Refusal):
        return cut, written
    made = whole if written.with_tail else cut
    fault = _useless(turn, made, written.text, goes_on=goes_on)
    if fault is not None:
        return made, Refusal(fault=fault, tokens=written.tokens, model=written.model)
    return made, written


async def _fail(
    run: Run, turn: PreparedTurn, part: CompactionPart, message: AssistantMessage, refusal: Refusal
) -> TurnOutcome:
    """End a failed attempt.

    The work that a requested compaction interrupted continues as long as its requests fit. So does a request
    that fits by its length, if only the token count spoke against it.
    """
    judged = not part.overflow and isinstance(refusal.fault, ContextOverflowFault) and fit.fits(turn)
    goes_on = judged if part.auto else turn.owed
    _log("compaction.failed", part, message, refusal.fault)
    await write.fail(run, message, refusal, goes_on=goes_on, asked=not part.auto)
    return TurnOutcome(next="continue" if goes_on else "stop", compacted=True)


async def _todos(run: Run) -> list[Todo]:
    records = await run.engine.store.select("todo", session=run.recorder.session)
    return [todo for record in records for todo in record.value()]


async def _ask_to_continue(run: Run, turn: PreparedTurn, *, overflow: bool) -> bool:
    """Whether the work continues by itself after the compaction; a plugin may say no."""
    plugins = run.engine.plugins(turn.workspace)
    if not plugins.wants(COMPACTION_AUTOCONTINUE):
        return True
    seen = Compacted(
        session_id=turn.session.id,
        agent=turn.agent.name,
        model=turn.user.model,
        message=turn.user,
        overflow=overflow,
    )
    return (await plugins.call(COMPACTION_AUTOCONTINUE, seen, AutoContinue())).enabled


async def _open_summary(run: Run, turn: PreparedTurn, info: UserMessage) -> AssistantMessage:
    """Write the message for the summary; until it is finished the earlier compaction stays in force."""
    now_ms = run.engine.clock.now_ms()
    model = turn.model
    try:
        agent = turn.workspace.agents.get(AGENT)
    except NotFound:
        agent = None  # The user disabled the agent: the model of the turn summarises, without instructions.
    if agent is not None and agent.model is not None:
        model = turn.workspace.providers.model(agent.model.provider_id, agent.model.model_id)

    made: list[AssistantMessage] = []

    def compose(ids: Ids) -> list[Put]:
        made.append(assistant_message.summary(turn, info, ids.message(), now_ms, model=model, agent=AGENT))
        return [put(made[-1])]

    await settle.change(
        run, compose, lambda session: replace(session, time=replace(session.time, compacting=now_ms))
    )
    return made[-1]

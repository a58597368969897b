"""One provider turn, from top to bottom: prepare it, ask the model, run its calls, close the answer."""

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import anyio
from msgspec.structs import replace

from holdfast import flags
from holdfast.log import event
from holdfast.provider.request import assemble, cache_marks, lowering
from holdfast.provider.request import prefix as blocks
from holdfast.provider.request.request import Request, ToolChoice
from holdfast.runtime import boundary
from holdfast.runtime.answer import assistant_message, outcome, provider_call
from holdfast.runtime.answer.outcome import TurnOutcome
from holdfast.runtime.budget import reservations
from holdfast.runtime.calls import background_notices
from holdfast.runtime.compaction import compact, fit
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch import epochs, prefix_change
from holdfast.runtime.history import work as plan
from holdfast.schema.ids import MessageID
from holdfast.schema.message import AssistantMessage, MessageWithParts, SystemMessage
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.schema.part import StepPrefix, StepStartPart
from holdfast.schema.times import Created
from holdfast.store.batch import Put
from holdfast.store.put import put
from holdfast.tools import structured

T = TypeVar("T")

LAST_STEP: Final = (
    "You have used all the steps that this task may take, so no tool can be called any more. Answer in text "
    "now: say what was done, what is left, and what you would do next."
)


LAST_STEP_SHAPED: Final = (
    "You have used all the steps that this task may take, so no other tool can be called any more. Give your "
    f"answer now, by calling {structured.NAME} with what you know."
)


async def turn(run: Run, history: list[MessageWithParts] | None = None, *, force: bool = True) -> TurnOutcome:
    """Take one turn of the session; `done` when the model owes no answer (see `boundary.prepare_turn`)."""
    ready = await boundary.prepare_turn(run, history, force=force)
    if ready is None:
        return TurnOutcome(next="done")
    if ready.asked is not None:
        return await _in_time(run, ready, compact.on_request(run, ready, ready.asked))
    if ready.last_step and not plan.has_notice(ready.history, _last_step_text(ready)):
        ready = await _announce_last_step(run, ready)
    ready = await background_notices.announce(run, ready)
    request = _request(run, ready)
    named = blocks.named(request, run.last.names)
    if fit.needed(ready, named.characters) is not None:
        return await _in_time(run, ready, compact.automatic(run, ready))
    prefix = _prefix(run, ready, named)
    message = await _open_answer(run, ready, prefix)
    run.last.sent = (message.id, named.names)
    if (why := await reservations.reserve(run.engine, ready.session, request, message.id)) is not None:
        return await outcome.refuse(run, message, why)
    answer = await _in_time(run, ready, provider_call.ask(run, ready, request, message))
    ended = await outcome.close(run, ready, message, answer)
    if ended.overflowed:
        return await _in_time(run, ready, compact.automatic(run, ready, overflow=True))
    return ended


async def _in_time(run: Run, ready: PreparedTurn, work: Coroutine[Any, Any, T]) -> T:
    """Do the work within the time left in the budget of the session's tree, or raise `OutOfTime`."""
    left_s = await reservations.time_left_s(run.engine, ready.session)
    with anyio.move_on_after(left_s):
        return await work
    raise reservations.OutOfTime("the budget of time was used up in the middle of the turn")


async def _announce_last_step(run: Run, ready: PreparedTurn) -> PreparedTurn:
    """Store a system message that this is the last step, and add it to the turn."""

    def make(id: MessageID) -> SystemMessage:
        now = Created(created=run.engine.clock.now_ms())
        return SystemMessage(id=id, session_id=ready.session.id, time=now, text=_last_step_text(ready))

    message = await run.recorder.add_message(make)
    notice = MessageWithParts(message, ())
    return replace(ready, history=[*ready.history, notice], shown=[*ready.shown, notice])


def _last_step_text(ready: PreparedTurn) -> str:
    return LAST_STEP_SHAPED if isinstance(ready.user.format, JsonSchemaFormat) else LAST_STEP


def _request(run: Run, ready: PreparedTurn) -> Request:
    """The request: the epoch's blocks, then the messages."""
    return assemble.assemble(
        ready.model,
        system=ready.system,
        messages=lowering.lower(ready.shown, ready.model, rules=ready.epoch.rules, known=run.last.lowered),
        tools=ready.tools,
        tool_choice=_choice(ready),
        agent=ready.agent,
        variant=ready.variant,
        output_tokens_max=flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX),
        cache_key=cache_marks.cache_key(ready.session, compacted=ready.compacted),
        session=ready.session.id,
    )


def _prefix(run: Run, ready: PreparedTurn, named: blocks.Named) -> StepPrefix:
    """What the step stores of the request's blocks. Warns if the prefix moved without a reason."""
    epoch = ready.epoch.value
    last = prefix_change.before(ready.history, epoch, remembered=run.last.sent)
    causes = prefix_change.causes(last, ready.user, also=ready.moved)
    head = len(ready.tools) + len(ready.system)
    kept = prefix_change.step(epoch, last, named.names, causes, chars=named.characters, head=head)
    if kept.moved == prefix_change.FAULT:
        run.engine.warn(
            f"session {ready.session.id}: block {kept.block} of the request is not what it was, for no known "
            "reason; the provider's cache is lost from there on"
        )
    if kept.moved is not None:
        event.info("runtime", "prefix.moved", session=ready.session.id, reason=kept.moved, block=kept.block)
    return kept


def _choice(ready: PreparedTurn) -> ToolChoice:
    if isinstance(ready.user.format, JsonSchemaFormat):
        return "required"
    if not ready.last_step:
        return "auto"
    # Such a provider caches messages together with the choice of tools: forbidding them would make it read
    # the whole conversation again, now and in the next turn. So a system message forbids them first, and only
    # a model that calls one nevertheless is asked once more with tools forbidden.
    announced = plan.steps_since_prompt(ready.history) < (ready.agent.steps or 0)
    return "auto" if announced and cache_marks.takes_marks(ready.model) else "none"


async def _open_answer(run: Run, ready: PreparedTurn, prefix: StepPrefix) -> AssistantMessage:
    """Store the assistant message and its step before anything is sent.

    From here on a crash leaves a trace, and the step says what the provider may have in its cache.
    """
    made: list[AssistantMessage] = []

    def compose(ids: Ids) -> list[Put]:
        message = assistant_message.begun(ready, ids.message(), run.engine.clock.now_ms())
        step = StepStartPart(
            id=ids.part(), session_id=message.session_id, message_id=message.id, prefix=prefix
        )
        made.append(message)
        run.step = step
        return [put(message), put(step), *([] if updated is None else [put(updated)])]

    run.begin_turn()
    updated = epochs.sent(ready.epoch.value)  # The reasons are used up by this request.
    if not await run.recorder.write_deferred(compose):
        await run.recorder.write(compose)
    if updated is not None:
        run.epoch = replace(ready.epoch, value=updated)
    _log_begin(ready, made[-1])
    return made[-1]


def _log_begin(ready: PreparedTurn, message: AssistantMessage) -> None:
    event.info(
        "runtime",
        "turn.begin",
        session=message.session_id,
        message=message.id,
        agent=message.agent,
        model=f"{message.provider_id}/{message.model_id}",
        variant=ready.variant,
    )

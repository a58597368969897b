"""One provider turn: cross the boundary, ask, hear, settle, close. It reads from top to bottom."""

from typing import Final

from holdfast import flags
from holdfast.provider import assemble, caching, lowering, size
from holdfast.provider import prefix as blocks
from holdfast.provider.request import Request, ToolChoice
from holdfast.runtime import answering, boundary, budget, closing, moving
from holdfast.runtime.boundary import Ready
from holdfast.runtime.compacting import compact, fitting
from holdfast.runtime.plan import Ended
from holdfast.runtime.run import Run
from holdfast.schema import usage
from holdfast.schema.ids import MessageID
from holdfast.schema.message import AssistantMessage, AssistantPath, AssistantTime, SystemMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.schema.part import StepPrefix
from holdfast.schema.times import Created

LAST_STEP: Final = (
    "You have used all the steps that this task may take, so no tool can be called any more. Answer in text "
    "now: say what was done, what is left, and what you would do next."
)


async def turn(run: Run) -> Ended:
    """Take one turn of the session; `done` when there was nothing to say."""
    ready = await boundary.cross(run)
    if ready is None:
        return Ended(next="done", nothing=True)
    if ready.last_step:
        ready = await _told_last_step(run, ready)
    if ready.asked is not None:
        return await compact.by_hand(run, ready, ready.asked)
    request = _request(ready)
    named = blocks.named(request)
    if fitting.needed(ready, size.characters(request, named.length)) is not None:
        return await compact.automatic(run, ready)
    prefix = _prefix(run, ready, request, named)
    message = await _opened(run, ready)
    if (why := await budget.reserve(run.engine, ready.session, request, message.id)) is not None:
        return await closing.refuse(run, message, why)
    heard = await answering.answer(run, ready, request, message, prefix)
    ended = await closing.close(run, ready, message, heard)
    if ended.overflowed:
        return await compact.automatic(run, ready, overflow=True)
    return ended


async def _told_last_step(run: Run, ready: Ready) -> Ready:
    """Tell the model, durably, that it has to come to an end."""

    def make(id: MessageID) -> SystemMessage:
        now = Created(created=run.engine.clock.now_ms())
        return SystemMessage(id=id, session_id=ready.session.id, time=now, text=LAST_STEP)

    told = await run.recorder.add_message(make)
    ready.history.append(MessageWithParts(told, ()))
    return ready


def _request(ready: Ready) -> Request:
    """What is sent: the blocks of the epoch, then what was said."""
    return assemble.assemble(
        ready.model,
        system=ready.system,
        messages=lowering.lower(ready.shown, ready.model),
        tools=ready.tools,
        tool_choice=_choice(ready),
        agent=ready.agent,
        variant=ready.variant,
        output_tokens_max=flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX),
        cache_key=caching.cache_key(ready.session, compacted=ready.compacted),
        session=ready.session.id,
    )


def _prefix(run: Run, ready: Ready, request: Request, named: blocks.Named) -> StepPrefix:
    """What the step keeps of the request's blocks. A prefix that moved without a reason is our fault."""
    last = moving.before(ready.history, ready.epoch.id)
    causes = moving.causes(last, ready.history, ready.user, also=ready.moved)
    chars = size.characters(request, named.length)
    kept = moving.step(ready.epoch.id, last, named.names, causes, chars=chars)
    if kept.moved == moving.FAULT:
        run.engine.warn(
            f"session {ready.session.id}: block {kept.block} of the request is not what it was, for no known "
            "reason; the provider's cache is lost from there on"
        )
    return kept


def _choice(ready: Ready) -> ToolChoice:
    if ready.last_step:
        return "none"
    return "required" if isinstance(ready.user.format, JsonSchemaFormat) else "auto"


async def _opened(run: Run, ready: Ready) -> AssistantMessage:
    """The assistant message, before its first word: from here on a crash leaves a trace."""

    def make(id: MessageID) -> AssistantMessage:
        return AssistantMessage(
            id=id,
            session_id=ready.session.id,
            time=AssistantTime(created=run.engine.clock.now_ms()),
            parent_id=ready.user.id,
            model_id=ready.model.id,
            provider_id=ready.model.provider_id,
            mode=ready.agent.name,
            agent=ready.agent.name,
            path=AssistantPath(cwd=ready.session.directory, root=str(ready.around.places.worktree)),
            cost=0,
            tokens=usage.ZERO,
            variant=ready.variant,
        )

    return await run.recorder.add_message(make)

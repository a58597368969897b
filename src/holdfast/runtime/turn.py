"""One provider turn: cross the boundary, ask, hear, settle, close. It reads from top to bottom."""

from typing import Final

from holdfast import flags
from holdfast.provider import assemble, caching, lowering
from holdfast.provider.request import Request, ToolChoice, ToolDefinition
from holdfast.runtime import answering, boundary, budget, closing
from holdfast.runtime.boundary import Ready
from holdfast.runtime.plan import Ended
from holdfast.runtime.run import Run
from holdfast.schema import usage
from holdfast.schema.ids import MessageID
from holdfast.schema.message import AssistantMessage, AssistantPath, AssistantTime, SystemMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat
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
    request = _request(ready)
    message = await _opened(run, ready)
    if (why := await budget.reserve(run.engine, ready.session, request, message.id)) is not None:
        return await closing.refuse(run, message, why)
    heard = await answering.answer(run, ready, request, message)
    return await closing.close(run, ready, message, heard)


async def _told_last_step(run: Run, ready: Ready) -> Ready:
    """Tell the model, durably, that it has to come to an end."""

    def make(id: MessageID) -> SystemMessage:
        now = Created(created=run.engine.clock.now_ms())
        return SystemMessage(id=id, session_id=ready.session.id, time=now, text=LAST_STEP)

    told = await run.recorder.add_message(make)
    ready.history.append(MessageWithParts(told, ()))
    return ready


def _request(ready: Ready) -> Request:
    return assemble.assemble(
        ready.model,
        system=ready.system,
        messages=lowering.lower(ready.history, ready.model),
        tools=[
            ToolDefinition(name=tool.name, description=tool.description, input=tool.schema)
            for tool in ready.toolset.tools
        ],
        tool_choice=_choice(ready),
        agent=ready.agent,
        variant=ready.variant,
        output_tokens_max=flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX),
        cache_key=caching.cache_key(ready.session, compacted=False),
        session=ready.session.id,
    )


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

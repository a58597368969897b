"""Has the head of a conversation summarised: in one call, or in chunks where it is too long for one."""

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast import flags
from holdfast.errors import NotFound, ProviderError
from holdfast.plugins.hooks import SESSION_COMPACTING, Compacting, CompactionAsked
from holdfast.provider import assemble, size
from holdfast.provider.catalog import cost
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import Request, Text, User
from holdfast.runtime import budget, projecting
from holdfast.runtime.boundary import Ready
from holdfast.runtime.compacting import asking, carrying, fitting, measuring, transcript, wording
from holdfast.runtime.compacting.carrying import Carried
from holdfast.runtime.compacting.dividing import Divided
from holdfast.runtime.compacting.fitting import SUMMARY_TOKENS_MAX
from holdfast.runtime.faults import fault_of
from holdfast.runtime.run import Run
from holdfast.schema import usage
from holdfast.schema.agent import Agent
from holdfast.schema.fault import BudgetFault, Fault, MessageData
from holdfast.schema.message import AssistantMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.part import TextPart
from holdfast.schema.usage import Tokens

AGENT: Final = "compaction"
CHUNKS_MAX: Final = 32
NOTHING_MORE: Final = "[Nothing was said besides the current request.]"


class Refusal(msgspec.Struct, frozen=True):
    """Why a compaction came to nothing."""

    fault: Fault


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A summary, with what the model took to write it."""

    text: str
    tokens: Tokens
    cost: cost.Cost
    model: Model


async def write(
    run: Run,
    ready: Ready,
    message: AssistantMessage,
    divided: Divided,
    carried: Carried,
) -> Written | Refusal:
    """The summary of the head, merged with the one before; folded in chunks where the head is too long."""
    if not divided.head:
        return Refusal(
            fitting.overflow(f"there is nothing to summarise; {fitting.items(ready, carried, divided.tail)}")
        )
    early = fitting.too_long(ready, divided, carried, "")
    if early is not None:
        return Refusal(early)  # No summary, however short, would help.
    agent, model = _who(ready, message)
    current = carrying.newest_request([*divided.head, *divided.tail])
    # What is carried over word for word need not be summarised.
    own = transcript.pieces([each for each in divided.head if each is not current]) or [NOTHING_MORE]
    plugins = run.engine.plugins(ready.around)
    more = CompactionAsked()
    if plugins.wants(SESSION_COMPACTING):
        more = await plugins.call(SESSION_COMPACTING, Compacting(session_id=ready.session.id), more)
    chunks = transcript.chunks(own, _chunk_characters(ready, model))
    if len(chunks) > CHUNKS_MAX:
        chunks = [*chunks[:1], *chunks[-(CHUNKS_MAX - 1) :]]
    summary, taken = _summary_before(ready.history), usage.ZERO
    for number, chunk in enumerate(chunks):
        words = more.prompt or wording.prompt(chunk, summary, more.context if number == 0 else ())
        request = _request(agent, model, words, ready.session.id)
        why = await budget.reserve(run.engine, ready.session, request, message.id)
        if why is not None:
            return Refusal(BudgetFault(data=MessageData(message=why)))
        try:
            said = await asking.ask(run, ready.around, request)
        except ProviderError as error:
            return Refusal(fault_of(error, model.provider_id))
        taken = usage.add(taken, said.tokens)
        if not said.text:
            return Refusal(fitting.overflow("the model wrote no summary"))
        summary = said.text
    return Written(text=summary, tokens=taken, cost=cost.cost(taken, model.prices), model=model)


def _who(ready: Ready, message: AssistantMessage) -> tuple[Agent | None, Model]:
    """The compaction agent, and its model or the one of the turn."""
    try:
        agent = ready.around.agents.get(AGENT)
    except NotFound:
        return None, ready.model
    return agent, ready.around.providers.model(message.provider_id, message.model_id)


def _chunk_characters(ready: Ready, model: Model) -> int:
    """How much of the conversation one request to summarise may hold."""
    output = flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX)
    usable = measuring.room(model, None, output_tokens_max=output or SUMMARY_TOKENS_MAX).usable
    tokens = 100_000 if usable is None else max(1_000, int(usable * 0.9) - SUMMARY_TOKENS_MAX - 1_000)
    return int(tokens * min(measuring.ratio(ready.history, model), size.CHARACTERS_A_TOKEN))


def _summary_before(history: Sequence[MessageWithParts]) -> str:
    """The text of the compaction before this one."""
    last = next((each for each in reversed(history) if projecting.is_finished_summary(each)), None)
    return "" if last is None else "\n".join(part.text for part in last.parts if isinstance(part, TextPart))


def _request(agent: Agent | None, model: Model, words: str, session: str) -> Request:
    return assemble.assemble(
        model,
        system=(agent.prompt,) if agent is not None and agent.prompt else (),
        messages=(User(content=(Text(text=words),)),),
        agent=agent,
        output_tokens_max=SUMMARY_TOKENS_MAX,
        session=session,
    )

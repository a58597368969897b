"""Lets a model summarise the head of a conversation: in one call, or in chunks if it is too long for one."""

from collections.abc import Callable, Sequence
from typing import Final

import anyio
import msgspec

from holdfast import flags
from holdfast.errors import NotFound, ProviderError
from holdfast.plugins.hooks import SESSION_COMPACTING, Compacting, CompactionAsked
from holdfast.provider.catalog import cost
from holdfast.provider.catalog.model import Model
from holdfast.provider.fault import fault_of
from holdfast.provider.request import assemble, size
from holdfast.provider.request.events import FinishReason
from holdfast.provider.request.request import Request, Text, User
from holdfast.runtime.answer.completion import complete_with_retries
from holdfast.runtime.budget import reservations
from holdfast.runtime.compaction import carry, current_request, fit, measure, wording
from holdfast.runtime.compaction.divide import Divided
from holdfast.runtime.compaction.fit import SUMMARY_TOKENS_MAX
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import model_view, transcript
from holdfast.runtime.history.carried import carried_before
from holdfast.schema import usage
from holdfast.schema.agent import Agent
from holdfast.schema.fault import (
    BudgetFault,
    ContentFilterFault,
    Fault,
    MessageData,
    NoData,
    OutputLengthFault,
    UnknownData,
    UnknownFault,
)
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import TextPart
from holdfast.schema.usage import Tokens

AGENT: Final = "compaction"
CHUNKS_MAX: Final = 32
HALVINGS_MAX: Final = 4
RESERVED_MS: Final = 10 * 60 * 1_000
NOTHING_MORE: Final = "[Nothing was said besides the current request.]"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a compaction failed, and its usage."""

    fault: Fault
    tokens: Tokens = usage.ZERO
    model: Model | None = None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A summary and its usage."""

    text: str
    tokens: Tokens
    cost: cost.Cost
    model: Model
    with_tail: bool = False
    """Whether it includes the tail, which is then not kept."""


async def write(
    run: Run,
    turn: PreparedTurn,
    message: AssistantMessage,
    divided: Divided,
    *,
    gives_way: Callable[[str], bool],
) -> Written | Refusal:
    """Write the summary of the head, merged with the previous summary, chunk by chunk if the head is too
    long.

    If the summary turns out so long that the tail `gives_way`, the tail is summarised as well.
    """
    plugins = run.engine.plugins(turn.workspace)
    more = CompactionAsked()
    if plugins.wants(SESSION_COMPACTING):
        more = await plugins.call(SESSION_COMPACTING, Compacting(session_id=turn.session.id), more)
    folding = _Folding(run, turn, message, more)
    try:
        summary = await folding.over(_pieces(turn, divided.head), _summary_before(turn.history))
        with_tail = isinstance(summary, str) and bool(divided.tail) and gives_way(summary)
        if isinstance(summary, str) and with_tail:
            summary = await folding.over(_as_text(turn, divided.tail) or [NOTHING_MORE], summary)
    finally:
        await folding.release()
    if not isinstance(summary, str):
        return Refusal(fault=summary, tokens=folding.taken, model=folding.model)
    spent = cost.cost(folding.taken, folding.model.prices)
    return Written(text=summary, tokens=folding.taken, cost=spent, model=folding.model, with_tail=with_tail)


def _pieces(turn: PreparedTurn, head: Sequence[MessageWithParts]) -> list[str]:
    """The texts to summarise, including a request that was carried until now and no longer is."""
    own = _as_text(turn, head)
    before = carried_before(turn.history)
    if before.request and not current_request.current(turn.history).continued:
        own = [transcript.framed("person", before.request), *own]
    return own or [NOTHING_MORE]


def _as_text(turn: PreparedTurn, messages: Sequence[MessageWithParts]) -> list[str]:
    """Messages as text, without the text of the current request, which is carried over."""
    carried = {id(each) for each in current_request.current(turn.history).messages}
    return transcript.pieces([carry.besides(each) if id(each) in carried else each for each in messages])


class _Folding:
    """The calls of one compaction."""

    def __init__(
        self, run: Run, turn: PreparedTurn, message: AssistantMessage, more: CompactionAsked
    ) -> None:
        self._run = run
        self._ready = turn
        self._message = message
        self._more = more
        self._agent, self.model = _who(turn, message)
        self._reserved: list[str] = []
        self._begun = False
        """There is a summary of the first chunk."""
        self._shorter = False
        """A summary was cut by its length: from then on a shorter one is asked for."""
        self.taken = usage.ZERO

    async def over(self, pieces: Sequence[str], summary: str) -> str | Fault:
        """Fold the texts into the summary so far, chunk by chunk; in smaller chunks if the model refuses."""
        pending = _bounded(transcript.chunks(pieces, _chunk_characters(self._ready, self.model)))
        halvings = 0
        while pending:
            result = await self._ask(pending[0], summary)
            if isinstance(result, ProviderError):
                half = len(pending[0]) // 2
                if result.kind != "context-overflow" or halvings == HALVINGS_MAX or not half:
                    return fault_of(result, self.model.provider_id)
                halvings += 1
                pending = transcript.chunks(pending, half)
                continue
            if isinstance(result, OutputLengthFault) and not self._shorter:
                self._shorter = True
                continue
            if not isinstance(result, str):
                return result
            summary, pending, self._begun = result, pending[1:], True
        return summary

    async def _ask(self, chunk: str, summary: str) -> str | Fault | ProviderError:
        more = () if self._begun else self._more.context
        prompt = wording.prompt(chunk, summary, more, ask=self._more.prompt, shorter=self._shorter)
        request = _request(self._agent, self.model, prompt, self._ready.session.id)
        key = f"{self._message.id}:{len(self._reserved)}"
        engine, session = self._run.engine, self._ready.session
        why = await reservations.reserve(engine, session, request, key, for_ms=RESERVED_MS)
        if why is not None:
            return BudgetFault(data=MessageData(message=why))
        self._reserved.append(key)  # Held until the compaction ends: usage stays reserved.
        try:
            result = await complete_with_retries(self._run, self._ready.workspace, request)
        except ProviderError as error:
            return error
        self.taken = usage.add(self.taken, result.tokens)
        if (cut := _cut(result.reason)) is not None:
            return cut
        return result.text or fit.overflow("the model wrote no summary")

    async def release(self) -> None:
        """End the reservations; the usage is settled with the compaction itself."""
        with anyio.CancelScope(shield=True):
            for key in self._reserved:
                await reservations.forget(self._run.engine, self._ready.session, key)


def _cut(reason: FinishReason) -> Fault | None:
    """Why a summary with this finish reason cannot be used: what it lacks would be lost for the model."""
    match reason:
        case "content-filter":
            return ContentFilterFault(data=MessageData(message="the provider's filter ended the summary"))
        case "length":
            return OutputLengthFault(data=NoData())
        case "error":
            return UnknownFault(data=UnknownData(message="the provider ended the summary with an error"))
        case _:
            return None


def _bounded(chunks: list[str]) -> list[str]:
    """At most `CHUNKS_MAX` chunks, the first and the latest; a line says what is left out."""
    if len(chunks) <= CHUNKS_MAX:
        return chunks
    gone = len(chunks) - CHUNKS_MAX + 1
    kept = chunks[-(CHUNKS_MAX - 1) :]
    return [chunks[0], f"[{gone} pieces of the conversation are left out here.]\n\n{kept[0]}", *kept[1:]]


def _who(turn: PreparedTurn, message: AssistantMessage) -> tuple[Agent | None, Model]:
    """The compaction agent, and its model or the one of the turn."""
    try:
        agent = turn.workspace.agents.get(AGENT)
    except NotFound:
        return None, turn.model
    return agent, turn.workspace.providers.model(message.provider_id, message.model_id)


def _chunk_characters(turn: PreparedTurn, model: Model) -> int:
    """How many characters of the conversation one request to summarise may hold."""
    output = flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX)
    usable = measure.context_limits(model, None, output_tokens_max=output or SUMMARY_TOKENS_MAX).usable
    tokens = 100_000 if usable is None else max(1_000, int(usable * 0.9) - SUMMARY_TOKENS_MAX - 1_000)
    return int(tokens * min(measure.ratio(turn.history, model), size.CHARACTERS_A_TOKEN))


def _summary_before(history: Sequence[MessageWithParts]) -> str:
    """The summary of the previous compaction."""
    last = next((each for each in reversed(history) if model_view.is_finished_summary(each)), None)
    return "" if last is None else "\n".join(part.text for part in last.parts if isinstance(part, TextPart))


def _request(agent: Agent | None, model: Model, prompt: str, session: str) -> Request:
    return assemble.assemble(
        model,
        system=(agent.prompt,) if agent is not None and agent.prompt else (),
        messages=(User(content=(Text(text=prompt),)),),
        agent=agent,
        output_tokens_max=SUMMARY_TOKENS_MAX,
        session=session,
    )

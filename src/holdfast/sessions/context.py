"""Shows what the model is sent: every block in send order, its source, its size, and whether it was cached.

The view is the next request as `preview` builds it from the epoch: no source is observed, nothing is stored.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from holdfast.errors import NotFound
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import prefix, size
from holdfast.provider.request.request import (
    Assistant,
    ProviderMessage,
    Request,
    Results,
    SystemUpdate,
    ToolDefinition,
    User,
)
from holdfast.runtime.compaction import measure
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.epoch import prefix_change
from holdfast.runtime.epoch.pins import Pin
from holdfast.runtime.preview import preview
from holdfast.schema.epoch import ContextEpoch, SentRequest
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import StepStartPart
from holdfast.sessions import cache
from holdfast.sessions.cache import Move


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One block of the request. `cached`: the provider read it from its cache for the last answer."""

    source: str
    tokens: int
    cached: bool
    name: str
    text: str


class ContextView(msgspec.Struct, frozen=True, kw_only=True):
    """What the model is sent. `hit` is the share of all input that was read from the cache; `ideal` the share
    that could have been, had every request of an epoch found the whole of the one before it.
    """

    model: str
    agent: str
    epoch: str | None
    cause: str | None
    blocks: list[Block]
    tokens: int
    usable: int | None
    hit: float | None
    ideal: float | None
    moves: list[Move]


async def context(engine: Engine, id: str) -> ContextView:
    """The view of a session."""
    record = await engine.store.session(id)
    if record is None:
        raise NotFound(f"session {id[:60]} does not exist")
    next_ = await preview(engine, record.value())
    if next_ is None:
        raise NotFound(f"session {id} has not said anything to a model yet")
    turn, request = next_.turn, next_.request
    epoch = turn.epoch.value if next_.in_force else None
    ratio = measure.ratio(turn.history, turn.model)
    sources = [*_sources(request, next_.pin, turn.agent.name), *map(_author, request.messages)]
    last = None if epoch is None else prefix_change.before(turn.history, epoch)
    blocks = list(_blocks(sources, request, ratio, last, read=_read(turn.history, epoch)))
    steps = await cache.read_requests(engine.store, id)
    hit, ideal = cache.shares(steps)
    return ContextView(
        model=f"{turn.model.provider_id}/{turn.model.id}",
        agent=turn.agent.name,
        epoch=None if epoch is None else epoch.id,
        cause=None if epoch is None else epoch.cause,
        blocks=blocks,
        tokens=sum(block.tokens for block in blocks),
        usable=measure.context_limits(turn.model, turn.workspace.loaded.config.compaction).usable,
        hit=hit,
        ideal=ideal,
        moves=list(cache.moves(steps)),
    )


def _sources(request: Request, pin: Pin, agent: str) -> Iterator[str]:
    """Names for the blocks before the messages."""
    yield from (f"tool {tool.name}" for tool in request.tools)
    for number, _ in enumerate(pin.system):
        yield "instructions" if number == 0 else f"agent {agent}"
    if len(request.system) > len(pin.system):
        yield "baseline"


def _author(message: ProviderMessage) -> str:
    match message:
        case User():
            return "person"
        case Assistant():
            return "model"
        case Results():
            return "results of " + ", ".join(sorted({result.name for result in message.content}))
        case SystemUpdate():
            return "system update"


def _read(history: Sequence[MessageWithParts], epoch: ContextEpoch | None) -> int:
    """How many tokens the provider read from its cache for the epoch's last answer."""
    for message in reversed(history):
        starts = [part.prefix for part in message.parts if isinstance(part, StepStartPart)]
        if isinstance(message.info, AssistantMessage) and any(starts):
            is_of_epoch = epoch is not None and starts[-1] is not None and starts[-1].epoch == epoch.id
            return int(message.info.tokens.cache.read) if is_of_epoch else 0
    return 0


def _blocks(
    sources: Sequence[str], request: Request, ratio: float, last: SentRequest | None, *, read: int
) -> Iterator[Block]:
    """The blocks with their sizes. `cached` are those that the last request had too, up to as many tokens as
    the provider read from its cache for the last answer.
    """
    sent = [] if last is None else last.blocks
    total = 0
    named = prefix.named(request)
    values: Iterable[ToolDefinition | str | ProviderMessage] = (
        *request.tools,
        *request.system,
        *request.messages,
    )
    is_same = True
    for index, (source, name, value) in enumerate(zip(sources, named.names, values, strict=True)):
        tokens = round(_length(value, request.model) / ratio)
        total += tokens
        is_same = is_same and sent[index : index + 1] == [name]
        is_read = is_same and total <= read
        yield Block(source=source, tokens=tokens, cached=is_read, name=name, text=_text(value))


def _length(value: ToolDefinition | str | ProviderMessage, model: Model) -> int:
    match value:
        case str():
            return len(value)
        case ToolDefinition():
            return len(msgspec.json.encode(value))
        case _:
            return size.characters(Request(model=model, messages=(value,)))


def _text(value: ToolDefinition | str | ProviderMessage) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

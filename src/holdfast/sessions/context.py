"""Shows what the model is sent: every block in send order, its source, its size, and how the cache fares.

It is put together from the records alone, as the next request would be; nothing is asked of anybody.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from holdfast.errors import NotFound
from holdfast.provider import assemble, lowering, prefix, size
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import (
    Assistant,
    ProviderMessage,
    Request,
    Results,
    SystemUpdate,
    ToolDefinition,
    User,
)
from holdfast.runtime import moving, pins, plan, projecting
from holdfast.runtime.compacting import measuring
from holdfast.runtime.history import History
from holdfast.runtime.pins import Pin
from holdfast.runtime.room import Engine
from holdfast.schema.epoch import ContextEpoch
from holdfast.schema.message import AssistantMessage, UserMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.part import StepFinishPart, StepStartPart
from holdfast.schema.stored import Mark
from holdfast.schema.usage import Tokens


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One block of the request. `cached`: the provider read it from its cache for the last answer."""

    source: str
    tokens: int
    cached: bool
    name: str
    text: str


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose prefix was not that of the one before: why, and from which block on."""

    message: str
    reason: str
    block: int


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
    session = record.value()
    history = History(engine.store, id)
    everything = await history.read()
    # After a compaction there may be no prompt but the compaction's own.
    newest = plan.newest_user(projecting.spoken(everything)) or plan.newest_user(everything)
    if newest is None or not isinstance(newest.info, UserMessage):
        raise NotFound(f"session {id} has not said anything to a model yet")
    user = newest.info
    around = await engine.around(session)
    agent = around.agents.get(user.agent)
    model = around.providers.model(user.model.provider_id, user.model.model_id)
    found = await engine.store.select("epoch", session=id, mark=Mark.OPEN)
    epoch = found[-1].value() if found else None
    former = history.told_before(found[-1].position) if found else frozenset()
    said = [each for each in everything if each.info.id not in former]
    pin = _pin(epoch, pins.key_of(agent, model))
    system = (*pin.system, epoch.baseline) if epoch is not None and epoch.baseline else pin.system
    messages = lowering.lower(projecting.project(said), model)
    request = assemble.assemble(model, system=system, messages=messages, tools=pin.tools, agent=agent)
    ratio = measuring.ratio(everything, model)
    sources = [*_sources(pin, agent.name, system), *map(_speaker, request.messages)]
    blocks = list(_blocks(sources, request, ratio, _read(said, epoch)))
    hit, ideal = _shares(said)
    return ContextView(
        model=f"{model.provider_id}/{model.id}",
        agent=agent.name,
        epoch=None if epoch is None else epoch.id,
        cause=None if epoch is None else epoch.cause,
        blocks=blocks,
        tokens=sum(block.tokens for block in blocks),
        usable=measuring.room(model, around.loaded.config.compaction).usable,
        hit=hit,
        ideal=ideal,
        moves=list(_moves(said)),
    )


def _pin(epoch: ContextEpoch | None, key: str) -> Pin:
    kept: Any = None if epoch is None else epoch.pins.get(key)
    try:
        return msgspec.convert(kept, Pin)
    except msgspec.ValidationError:
        return Pin(system=(), tools=())


def _sources(pin: Pin, agent: str, system: Sequence[str]) -> Iterator[str]:
    """Names for what comes before the messages."""
    yield from (f"tool {tool.name}" for tool in sorted(pin.tools, key=lambda tool: tool.name))
    for number, _ in enumerate(pin.system):
        yield "instructions" if number == 0 else f"agent {agent}"
    if len(system) > len(pin.system):
        yield "baseline"


def _speaker(message: ProviderMessage) -> str:
    match message:
        case User():
            return "person"
        case Assistant():
            return "model"
        case Results():
            return "results of " + ", ".join(sorted({result.name for result in message.content}))
        case SystemUpdate():
            return "system update"


def _blocks(sources: Sequence[str], request: Request, ratio: float, cached: int) -> Iterator[Block]:
    """The blocks with their sizes; the first `cached` tokens of them came from the cache."""
    total = 0
    named = prefix.named(request)
    values: Iterable[ToolDefinition | str | ProviderMessage] = (
        *request.tools,
        *request.system,
        *request.messages,
    )
    for source, name, value in zip(sources, named.names, values, strict=True):
        tokens = round(_length(value, request.model) / ratio)
        total += tokens
        yield Block(source=source, tokens=tokens, cached=total <= cached, name=name, text=_text(value))


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


def _read(history: Sequence[MessageWithParts], epoch: ContextEpoch | None) -> int:
    """How many tokens the provider read from its cache for the last answer of this epoch."""
    answer = None if epoch is None else moving.before(history, epoch.id).answer
    return 0 if answer is None else int(answer.tokens.cache.read)


def _shares(history: Sequence[MessageWithParts]) -> tuple[float | None, float | None]:
    """The share of input that was read from the cache, and the share that could have been."""
    read = could = total = before = 0
    epoch: str | None = None
    for start, tokens in _steps(history):
        sent = int(tokens.input + tokens.cache.read + tokens.cache.write)
        moved = start.prefix is None or start.prefix.epoch != epoch or start.prefix.moved is not None
        read += int(tokens.cache.read)
        could += 0 if moved else min(before, sent)
        total += sent
        before = sent
        epoch = None if start.prefix is None else start.prefix.epoch
    return (read / total, could / total) if total else (None, None)


def _steps(history: Sequence[MessageWithParts]) -> Iterator[tuple[StepStartPart, Tokens]]:
    for message in history:
        start: StepStartPart | None = None
        for part in message.parts:
            if isinstance(part, StepStartPart):
                start = part
            elif isinstance(part, StepFinishPart) and start is not None:
                yield start, part.tokens


def _moves(history: Sequence[MessageWithParts]) -> Iterator[Move]:
    for message in history:
        for part in message.parts:
            kept = part.prefix if isinstance(part, StepStartPart) else None
            if kept is not None and kept.moved is not None and isinstance(message.info, AssistantMessage):
                yield Move(message=message.info.id, reason=kept.moved, block=kept.block or 0)

"""Shows what the model is sent: every block in send order, its source, its size, and how the cache fares.

It is put together as the next request would be, of what the epoch was told; no source is asked, and nothing
is kept.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from holdfast.errors import NotFound
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import assemble, lowering, prefix, size
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
from holdfast.runtime.engine.prepared_turn import Sampled
from holdfast.runtime.epoch import observe, pins, prefix_change
from holdfast.runtime.epoch import policy as authority
from holdfast.runtime.epoch.pins import Pin
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.epoch import rules_of
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.runtime.inbox import choice
from holdfast.schema.epoch import ContextEpoch, SentRequest
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.output_format import schema_of
from holdfast.schema.part import StepStartPart
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.sessions import cache
from holdfast.sessions.cache import Move
from holdfast.tools.registry import Registry


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


async def context(engine: Engine, id: str, *, tools: Callable[[Session], Registry]) -> ContextView:
    """The view of a session. `tools` are those of its place, for an agent that was not told any yet."""
    record = await engine.store.session(id)
    if record is None:
        raise NotFound(f"session {id[:60]} does not exist")
    session = record.value()
    history = SessionHistory(engine.store, id)
    everything = await history.read()
    # After a compaction there may be no prompt but the compaction's own.
    newest = work.newest_user(model_view.spoken(everything)) or work.newest_user(everything)
    if newest is None or not isinstance(newest.info, UserMessage):
        raise NotFound(f"session {id} has not said anything to a model yet")
    user = newest.info
    workspace = await engine.workspace(session)
    agent = choice.agent_in(session, workspace, user.agent)
    model = workspace.providers.model(user.model.provider_id, user.model.model_id)
    found = await engine.store.select("epoch", session=id, mark=Mark.OPEN)
    epoch = found[-1].value() if found else None
    former = history.told_before(found[-1].position) if found else frozenset()
    said = [each for each in everything if each.info.id not in former]
    policy = await authority.policy_of(engine, session, workspace, agent)
    chosen = Sampled(session=session, workspace=workspace, user=user, agent=agent, model=model, policy=policy)
    pin = _pin(epoch, chosen, tools(session))
    tools_sent = (*pin.tools, *pins.formed(schema_of(user.format)))
    system = (*pin.system, epoch.baseline) if epoch is not None and epoch.baseline else pin.system
    messages = lowering.lower(model_view.project(said), model, rules=rules_of(epoch))
    request = assemble.assemble(model, system=system, messages=messages, tools=tools_sent, agent=agent)
    ratio = measure.ratio(everything, model)
    sources = [*_sources(request, pin, agent.name), *map(_speaker, request.messages)]
    last = None if epoch is None else prefix_change.before(said, epoch)
    blocks = list(_blocks(sources, request, ratio, last, read=_read(said, epoch)))
    steps = await cache.walked(engine.store, id)
    hit, ideal = cache.shares(steps)
    return ContextView(
        model=f"{model.provider_id}/{model.id}",
        agent=agent.name,
        epoch=None if epoch is None else epoch.id,
        cause=None if epoch is None else epoch.cause,
        blocks=blocks,
        tokens=sum(block.tokens for block in blocks),
        usable=measure.context_limits(model, workspace.loaded.config.compaction).usable,
        hit=hit,
        ideal=ideal,
        moves=list(cache.moves(steps)),
    )


def _pin(epoch: ContextEpoch | None, chosen: Sampled, registry: Registry) -> Pin:
    """What the next request begins with; for an agent that was not asked yet, what it would be told.

    What is pinned is shown as it is: whoever looks may have other tools than the process that runs.
    """
    kept = {} if epoch is None else epoch.pins
    told: list[ToolDefinition] = []
    if pins.key_of(chosen.agent, chosen.model) not in kept:
        shown = registry.materialise(without=registry.names() - observe.shown_tools(registry, chosen))
        told = pins.definitions(shown)
    return pins.pinned(kept, chosen.agent, chosen.model, told).pin


def _sources(request: Request, pin: Pin, agent: str) -> Iterator[str]:
    """Names for what comes before the messages."""
    yield from (f"tool {tool.name}" for tool in request.tools)
    for number, _ in enumerate(pin.system):
        yield "instructions" if number == 0 else f"agent {agent}"
    if len(request.system) > len(pin.system):
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


def _read(history: Sequence[MessageWithParts], epoch: ContextEpoch | None) -> int:
    """How many tokens the provider read from its cache for the last answer of the epoch."""
    for message in reversed(history):
        starts = [part.prefix for part in message.parts if isinstance(part, StepStartPart)]
        if isinstance(message.info, AssistantMessage) and any(starts):
            is_of_epoch = epoch is not None and starts[-1] is not None and starts[-1].epoch == epoch.id
            return int(message.info.tokens.cache.read) if is_of_epoch else 0
    return 0


def _blocks(
    sources: Sequence[str], request: Request, ratio: float, last: SentRequest | None, *, read: int
) -> Iterator[Block]:
    """The blocks with their sizes. Those that the last request had too, up to as many tokens as the provider
    read for its answer, came from the cache.
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

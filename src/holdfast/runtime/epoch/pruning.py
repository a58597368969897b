"""Pruning: takes old tool output out of the model view. The store keeps it, the request has a marker.

It moves the prefix, so it is done where the prefix is new anyway, or where it saves more than the lost cache
costs. What must stay true: the latest output, that of the last two prompts, and that of protected tools
stays.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast import flags
from holdfast.provider.catalog.model import Price, Prices
from holdfast.provider.request.size import CHARACTERS_A_TOKEN, estimate
from holdfast.runtime.engine.prepared_turn import Sampled
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch import epochs, prefix_change
from holdfast.runtime.history import model_view
from holdfast.runtime.history.epoch import Epoch
from holdfast.schema import typed
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import StepStartPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.store.put import put

PROTECT: Final = 40_000
"""Tokens of the latest output that stay in any case."""
MINIMUM: Final = 20_000
"""Tokens from which on pruning is worth it."""
TURNS_KEPT: Final = 2
PROTECTED: Final = frozenset({"skill"})
EXPECTED_MAX: Final = 50
PRUNED_FOR: Final = "prunedFor"
"""In the metadata of a call whose output was pruned: before which request (`PrunedFor`)."""
READ_SHARE: Final = 0.1
"""The price of a cached token as a share of the input's price, where the catalogue has none."""
WRITE_SHARE: Final = 1.25


class PrunedFor(msgspec.Struct, frozen=True):
    """A request by its epoch and its number there, from 1: a fork keeps both."""

    epoch: str
    request: int


async def prune(
    run: Run, chosen: Sampled, epoch: Epoch, history: list[MessageWithParts]
) -> tuple[list[MessageWithParts], Epoch]:
    """Prune what is worth it. Returns the history, and the epoch with the reason if this moves the prefix."""
    config = chosen.workspace.loaded.config.compaction
    wanted = None if config is None else config.prune
    if wanted is False or flags.enabled(flags.DISABLE_PRUNE):
        return history, epoch
    old = candidates(history) if _may_hold(history) else []
    if not old:
        return history, epoch
    sent = prefix_change.requests(history).count(epoch.id)
    if not (wanted or not sent or pays(history, old, chosen.model.prices)):
        return history, epoch
    now_ms, before = run.engine.clock.now_ms(), PrunedFor(epoch.id, sent + 1)
    gone: dict[str, ToolPart] = {part.id: _cleared(part, now_ms, before) for part in old}
    puts = map(put, gone.values())
    if sent:
        epoch = await epochs.keep_reason(run, epoch, prefix_change.PRUNING, *puts)
    else:
        await run.recorder.commit(*puts)
    return _replaced(history, gone), epoch


def _may_hold(history: Sequence[MessageWithParts]) -> bool:
    """Whether the last request was long enough for anything to be pruned."""
    for message in reversed(history):
        for part in message.parts:
            if isinstance(part, StepStartPart) and part.prefix is not None and part.prefix.chars is not None:
                return part.prefix.chars > (PROTECT + MINIMUM) * CHARACTERS_A_TOKEN
    return True


def candidates(history: Sequence[MessageWithParts]) -> list[ToolPart]:
    """The parts whose output may be pruned, oldest last; none if they have too few tokens. Pure."""
    prompts = kept = going = 0
    found: list[ToolPart] = []
    for message in reversed(history):
        if model_view.is_summary(message):
            break
        prompts += isinstance(message.info, UserMessage) and not message.info.no_reply
        if prompts < TURNS_KEPT:
            continue
        for part in reversed(message.parts):
            if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
                continue
            if part.state.time.compacted is not None:
                return found if going > MINIMUM else []
            if part.tool in PROTECTED or (part.metadata or {}).get("providerExecuted"):
                continue
            size = estimate(part.state.output)
            kept += size
            if kept > PROTECT:
                going += size
                found.append(part)
    return found if going > MINIMUM else []


def pays(history: Sequence[MessageWithParts], old: Sequence[ToolPart], prices: Prices | None) -> bool:
    """Whether future requests save more than it costs to cache the rest of the prefix again. Pure.

    As many turns are expected as there have been.
    """
    price = None if prices is None else prices.base
    removed = sum(estimate(part.state.output) for part in old if isinstance(part.state, ToolCompleted))
    ids = {part.id for part in old}
    rest, begun, turns = 0, False, 0
    for message in history:
        begun = begun or any(part.id in ids for part in message.parts)
        turns += isinstance(message.info, AssistantMessage)
        if begun:
            rest += sum(_size(part) for part in message.parts if part.id not in ids)
    read, write = _shares(price)
    return removed * min(turns, EXPECTED_MAX) * read > rest * (write - read)


def _shares(price: Price | None) -> tuple[float, float]:
    """The prices of a cached and of a written token, as shares of the input's price."""
    if price is None or not price.input:
        return READ_SHARE, WRITE_SHARE
    if price.cache_read is None:
        return READ_SHARE, WRITE_SHARE
    # A provider that caches by itself charges nothing for writing: what is not read is plain input.
    write = 1.0 if price.cache_write is None else float(price.cache_write / price.input)
    return float(price.cache_read / price.input), write


def _size(part: object) -> int:
    """About how many tokens a part has."""
    match part:
        case ToolPart(state=ToolCompleted(output=output)):
            return estimate(output)
        case _:
            return estimate(getattr(part, "text", "") or "")


def _cleared(part: ToolPart, now_ms: int, before: PrunedFor) -> ToolPart:
    assert isinstance(part.state, ToolCompleted)
    time = replace(part.state.time, compacted=now_ms)
    metadata = {**part.state.metadata, PRUNED_FOR: msgspec.to_builtins(before)}
    return replace(part, state=replace(part.state, time=time, metadata=metadata))


def unpruned(part: ToolPart, requests: Sequence[str]) -> ToolPart:
    """The part as it was in a history with only these requests (`prefix_change.requests`). Pure."""
    if not isinstance(part.state, ToolCompleted) or PRUNED_FOR not in part.state.metadata:
        return part
    if _is_sent(part.state.metadata[PRUNED_FOR], requests):
        return part
    metadata = {key: value for key, value in part.state.metadata.items() if key != PRUNED_FOR}
    time = replace(part.state.time, compacted=None)
    return replace(part, state=replace(part.state, time=time, metadata=metadata))


def _is_sent(data: object, requests: Sequence[str]) -> bool:
    """Whether the request for which something was pruned, or a later one, is among these."""
    try:
        pruned = typed.convert(data, PrunedFor)
    except msgspec.ValidationError:
        return True  # Of another version: it stays pruned.
    count = requests.count(pruned.epoch)
    return count >= pruned.request or (count > 0 and requests[-1] != pruned.epoch)


def _replaced(history: list[MessageWithParts], parts: Mapping[str, ToolPart]) -> list[MessageWithParts]:
    return [
        MessageWithParts(each.info, tuple(parts.get(part.id, part) for part in each.parts))
        if any(part.id in parts for part in each.parts)
        else each
        for each in history
    ]

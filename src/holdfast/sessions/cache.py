"""The provider's cache over a whole session: what each request read from it, compacted history included."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.schema.part import StepFinishPart, StepStartPart
from holdfast.schema.usage import Tokens
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage

_PAGE: Final = 500
_STEPS: Final = (b'"step-start"', b'"step-finish"')


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A request that began differently from the one before it: why, and from which block on."""

    message: str
    reason: str
    block: int


class RequestUsage(msgspec.Struct, frozen=True):
    """One request of the session and the tokens of its answer; None where the answer did not end."""

    message: str
    start: StepStartPart
    tokens: Tokens | None


async def read_requests(store: Store, session: str) -> list[RequestUsage]:
    """Every request of the session in order, also those before a compaction.

    Reads the whole transcript a page at a time; only steps are decoded.
    """
    found: list[RequestUsage] = []
    query = MessageQuery(session, limit=_PAGE, system=False)
    while True:
        page = await store.messages(query)
        here = [step for message in page.messages for step in _steps(message)]
        found[:0] = here
        if page.older is None:
            return found
        query = replace(query, before=page.older)


def _steps(message: StoredMessage) -> Iterator[RequestUsage]:
    start: StepStartPart | None = None
    for part in message.parts:
        value = part.value() if any(kind in part.data for kind in _STEPS) else None
        if isinstance(value, StepStartPart):
            if start is not None:
                yield RequestUsage(message.info.id, start, None)
            start = value
        elif isinstance(value, StepFinishPart) and start is not None:
            yield RequestUsage(message.info.id, start, value.tokens)
            start = None
    if start is not None:
        yield RequestUsage(message.info.id, start, None)


def shares(steps: Sequence[RequestUsage]) -> tuple[float | None, float | None]:
    """The share of input that was read from the cache, and the share that could have been."""
    read = could = total = before = 0
    epoch: str | None = None
    for step in steps:
        if step.tokens is None:
            continue
        tokens, kept = step.tokens, step.start.prefix
        sent = int(tokens.input + tokens.cache.read + tokens.cache.write)
        moved = kept is None or kept.epoch != epoch or kept.moved is not None
        read += int(tokens.cache.read)
        could += 0 if moved else min(before, sent)
        total += sent
        before = sent
        epoch = None if kept is None else kept.epoch
    return (read / total, could / total) if total else (None, None)


def moves(steps: Sequence[RequestUsage]) -> Iterator[Move]:
    """The requests whose prefix moved."""
    for step in steps:
        kept = step.start.prefix
        if kept is not None and kept.moved is not None:
            yield Move(message=step.message, reason=kept.moved, block=kept.block or 0)

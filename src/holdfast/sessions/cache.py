"""How the provider's cache has fared over a whole session, what was compacted included."""

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
    """A request whose prefix was not that of the one before: why, and from which block on."""

    message: str
    reason: str
    block: int


class Walked(msgspec.Struct, frozen=True):
    """One request of the session, and what its answer took; None where none was heard to its end."""

    message: str
    start: StepStartPart
    tokens: Tokens | None


async def walked(store: Store, session: str) -> list[Walked]:
    """Every request of the session, those before a compaction too, the first first.

    The whole transcript is passed through, a page at a time; only the steps are looked into.
    """
    found: list[Walked] = []
    query = MessageQuery(session, limit=_PAGE, system=False)
    while True:
        page = await store.messages(query)
        here = [step for message in page.messages for step in _steps(message)]
        found[:0] = here
        if page.older is None:
            return found
        query = replace(query, before=page.older)


def _steps(message: StoredMessage) -> Iterator[Walked]:
    start: StepStartPart | None = None
    for part in message.parts:
        value = part.value() if any(kind in part.data for kind in _STEPS) else None
        if isinstance(value, StepStartPart):
            if start is not None:
                yield Walked(message.info.id, start, None)
            start = value
        elif isinstance(value, StepFinishPart) and start is not None:
            yield Walked(message.info.id, start, value.tokens)
            start = None
    if start is not None:
        yield Walked(message.info.id, start, None)


def shares(steps: Sequence[Walked]) -> tuple[float | None, float | None]:
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


def moves(steps: Sequence[Walked]) -> Iterator[Move]:
    """The requests whose prefix moved."""
    for step in steps:
        kept = step.start.prefix
        if kept is not None and kept.moved is not None:
            yield Move(message=step.message, reason=kept.moved, block=kept.block or 0)

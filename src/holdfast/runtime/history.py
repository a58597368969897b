"""Reads the messages of a session, turn after turn: from the last compaction on, in the model's order.

Records that have not changed since the last turn are not decoded again: a turn at a thousand messages costs
about what it costs at ten.
"""

from typing import Any

from holdfast.runtime import projecting
from holdfast.schema.message import SystemMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage, StoredRecord


class History:
    """The messages of one session."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._known: dict[str, tuple[int, Any]] = {}
        self._placed: list[tuple[int, MessageWithParts]] = []

    async def read(self) -> list[MessageWithParts]:
        """Messages by their place, from the last compaction on, those that wait in the inbox included."""
        page = await self._store.messages(MessageQuery(self._session, since_compaction=True))
        ordered = sorted(page.messages, key=lambda message: message.info.place)
        fresh: dict[str, tuple[int, Any]] = {}
        self._placed = [(message.info.place, self._typed(message, fresh)) for message in ordered]
        self._known = fresh
        return [message for _, message in self._placed]

    def told_before(self, position: int) -> frozenset[str]:
        """The system messages of what was last read that stand before a position: those of former epochs."""
        return frozenset(
            message.info.id
            for place, message in self._placed
            if place < position and isinstance(message.info, SystemMessage)
        )

    def summarised_since(self, position: int) -> bool:
        """Whether a compaction was completed after a position, as of what was last read."""
        return any(
            place > position and projecting.is_finished_summary(message) for place, message in self._placed
        )

    def _typed(self, message: StoredMessage, fresh: dict[str, tuple[int, Any]]) -> MessageWithParts:
        return MessageWithParts(
            self._value(message.info, fresh), tuple(self._value(part, fresh) for part in message.parts)
        )

    def _value(self, record: StoredRecord, fresh: dict[str, tuple[int, Any]]) -> Any:
        known = self._known.get(record.id)
        if known is None or known[0] != record.seq:
            known = (record.seq, record.value())
        fresh[record.id] = known
        return known[1]

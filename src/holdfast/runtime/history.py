"""The Session History of a turn: what the model is shown, in its order.

Records that have not changed since the last turn are not decoded again: a turn at a thousand messages costs
about what it costs at ten.
"""

from typing import Any

from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage, StoredRecord


class History:
    """Reads the history of one session, turn after turn."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._known: dict[str, tuple[int, Any]] = {}

    async def read(self) -> list[MessageWithParts]:
        """Messages by their place, from the last compaction on, those that wait in the inbox included."""
        page = await self._store.messages(MessageQuery(self._session, since_compaction=True))
        ordered = sorted(page.messages, key=lambda message: message.info.place)
        fresh: dict[str, tuple[int, Any]] = {}
        history = [self._typed(message, fresh) for message in ordered]
        self._known = fresh
        return history

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

"""The messages of a session, cached from turn to turn: from the last compaction on, in the model's order.

A turn reads only what has changed since the last one, so that at a thousand messages it costs about what it
costs at ten. What must stay true: `read` returns what the store holds. If the changes are not enough to know
it, everything is read again.
"""

from collections.abc import Sequence
from typing import Any

from holdfast.runtime.history import model_view
from holdfast.runtime.history.files_seen import FilesSeen
from holdfast.schema.message import MessageWithParts, SystemMessage
from holdfast.schema.stored import Mark
from holdfast.store import reverted
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery
from holdfast.store.record import Resync, SessionRecord, StoredMessage, StoredRecord
from holdfast.store.reverted import Point

_BATCH = 500


class CachedMessage:
    """One message as it was last read; decoded when its value is first used."""

    __slots__ = ("_value", "compacts", "info", "parts", "values")

    def __init__(self, info: StoredRecord) -> None:
        self.info = info
        self.parts: dict[str, StoredRecord] = {}
        self.values: dict[str, Any] = {}
        self.compacts = False
        """Whether it asks for a compaction, or is the summary of one."""
        self._value: MessageWithParts | None = None

    def take(self, record: StoredRecord) -> None:
        """Replace the record of the message or of one of its parts."""
        if record.kind == "message":
            self.info = record
        else:
            self.parts[record.id] = record
        self.values.pop(record.id, None)
        self._value = None

    @property
    def value(self) -> MessageWithParts:
        """The message with its parts, in the order of their creation."""
        if self._value is None:
            parts = sorted(self.parts.values(), key=lambda part: part.position)
            self._value = MessageWithParts(self._of(self.info), tuple(self._of(part) for part in parts))
            self.compacts = model_view.is_summary(self._value) or (
                model_view.compaction_of(self._value) is not None
            )
        return self._value

    def _of(self, record: StoredRecord) -> Any:
        if record.id not in self.values:
            self.values[record.id] = record.value()
        return self.values[record.id]


def _unmarked() -> dict[Mark, dict[str, str]]:
    """An empty index by mark: for each mark, the records that have it, with their messages."""
    return {mark: {} for mark in Mark if mark is not Mark.NONE}


class SessionHistory:
    """The messages of one session."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._cursor: str | None = None
        self._point: Point | None = None
        """Where a staged revert cut it, at the last reading."""
        self._seen = 0
        self._held: dict[str, CachedMessage] = {}
        self._order: list[CachedMessage] = []
        self._values: list[MessageWithParts] = []
        self._at: dict[str, int] = {}
        """The index of each message in the order, which is kept from reading to reading."""
        self._moved = False
        """Whether the order has to be computed again."""
        self._changed: set[str] = set()
        self._compacting: set[str] = set()
        self._marked = _unmarked()
        self.record: SessionRecord | None = None
        """The session, as of the last reading."""
        self.unsearched_ids: set[str] = set()
        """Messages added or changed since the instruction files beside the files they read were last
        searched. The search removes them once its result is stored.
        """
        self.files = FilesSeen(store, session)

    async def read(self) -> list[MessageWithParts]:
        """The messages by place, from the last compaction on, including those that wait in the inbox."""
        self.record = await self._store.session(self._session)
        point = None if self.record is None else reverted.point_in(self.record.data)
        # What is hidden, or shown again, did not change by itself.
        same, self._point = point is None and self._point is None, point
        if self._cursor is None or not same or not await self._catch_up():
            await self._read_all()
        return self._messages()

    def _messages(self) -> list[MessageWithParts]:
        if self._moved:
            self._order = sorted(self._held.values(), key=lambda held: held.info.place)
            self._values = [held.value for held in self._order]
            self._at = {held.info.id: index for index, held in enumerate(self._order)}
            self._compacting = {held.info.id for held in self._order if held.compacts}
        else:
            for id in self._changed:
                held = self._held[id]
                self._values[self._at[id]] = held.value
                (self._compacting.add if held.compacts else self._compacting.discard)(id)
        self._moved, self._changed = False, set()
        return list(self._values)

    def _place(self, held: CachedMessage, *, moved: bool) -> None:
        """Note that a message was added or changed. Nearly always it is the last, and the order is unchanged.

        A new message that cannot be read is not noted: each reading then finds it again, and raises its name.
        """
        id = held.info.id
        if id not in self._at and not (self._order and self._order[-1].info.place > held.info.place):
            self._values.append(held.value)  # First: it may raise.
            self._at[id] = len(self._order)
            self._order.append(held)
        elif id not in self._at or (moved and self._order[-1] is not held):
            self._moved = True
        self._changed.add(id)

    async def with_(self, messages: Sequence[str]) -> list[MessageWithParts]:
        """What was last read, plus these messages: a waiting prompt may come before the last compaction."""
        for id in messages:
            if id not in self._held:
                page = await self._store.messages(MessageQuery(self._session, only=id))
                for message in page.messages:
                    self._hold(message, None)
                    self.unsearched_ids.add(id)
                    self._moved = True
        return self._messages()

    async def _read_all(self) -> None:
        self._cursor = await self._store.head()
        page = await self._store.messages(MessageQuery(self._session, since_compaction=True))
        before, self._held = self._held, {}
        self._marked = _unmarked()
        self._moved = True
        for message in page.messages:
            self._hold(message, before.get(message.info.id))
        self._seen = 0 if self.record is None else self.record.head
        self.unsearched_ids = set(self._held)

    def _hold(self, message: StoredMessage, known: CachedMessage | None) -> None:
        """Cache a message; parts that have not changed since are not decoded again."""
        held = self._held[message.info.id] = CachedMessage(message.info)
        held.parts = {part.id: part for part in message.parts}
        for record in (message.info, *message.parts):
            if record.mark is not Mark.NONE:
                self._note(record, message.info.id)
        if known is not None:
            same = [known.info, *known.parts.values()]
            now = {record.id: record.seq for record in (message.info, *message.parts)}
            kept = {record.id for record in same if now.get(record.id) == record.seq}
            held.values = {id: value for id, value in known.values.items() if id in kept}

    async def _catch_up(self) -> bool:
        """Apply the changes since the last reading; False if everything has to be read again."""
        recent = True
        while True:
            changes = await self._store.changes(self._cursor, self._session, limit=_BATCH, recent=recent)
            if isinstance(changes, Resync):
                return False
            for changed in changes.records:
                self._seen = max(self._seen, changed.record.seq)
                if changed.removed or changed.again or not self._take(changed.record, fresh=changed.created):
                    return False
            self._cursor = changes.cursor
            if not changes.complete:
                continue
            if self.record is not None and self._seen >= self.record.head:
                return True
            if not recent:
                return False  # The store does not list every change yet: read everything.
            recent = False

    def _take(self, record: StoredRecord, *, fresh: bool) -> bool:
        """Apply one change; False if it may move the beginning of the model view."""
        if record.kind == "message":
            known = self._held.get(record.id)
            if record.mark is Mark.SUMMARY or (known is not None and known.info.mark is Mark.SUMMARY):
                return known is not None and known.info.seq == record.seq
            if known is None and not fresh:
                # An old message, written again: its parts, and whether it is in the model view, are not
                # known.
                return False
            if known is None:
                known = CachedMessage(record)
                self._place(known, moved=True)
                self._held[record.id] = known
            elif known.info.seq != record.seq:
                moved = known.info.place != record.place
                known.take(record)
                self._place(known, moved=moved)
            self._note(record, record.id)
            self.unsearched_ids.add(record.id)
            return True
        if record.kind == "part" and (held := self._held.get(record.parent or "")) is not None:
            if record.id not in held.parts or held.parts[record.id].seq != record.seq:
                held.take(record)
                self._changed.add(held.info.id)
            self._note(record, held.info.id)
            self.unsearched_ids.add(held.info.id)
        return True

    @property
    def has_compaction(self) -> bool:
        """Whether what was last read contains a compaction, or an attempt."""
        return bool(self._compacting)

    @property
    def is_open(self) -> bool:
        """Whether anything in what was last read is unfinished: a message, a text, a call."""
        return bool(self._marked[Mark.OPEN])

    def _note(self, record: StoredRecord, message: str) -> None:
        """Index a record by its mark."""
        for mark, records in self._marked.items():
            if mark is not record.mark:
                records.pop(record.id, None)
        if record.mark is not Mark.NONE:
            self._marked[record.mark][record.id] = message

    def _with(self, mark: Mark) -> list[CachedMessage]:
        return [self._held[id] for id in self._marked[mark].values() if id in self._held]

    def has(self, message: str) -> bool:
        """Whether the message was there when it was last read."""
        return message in self._held

    def unsearched(self) -> list[MessageWithParts]:
        """The messages added or changed since instruction files beside their files were last searched."""
        fresh = [held for id in self.unsearched_ids if (held := self._held.get(id)) is not None]
        return [held.value for held in sorted(fresh, key=lambda held: held.info.place)]

    def former_context(self, position: int) -> frozenset[str]:
        """Ids of system messages about the System Context before a position, that is of former epochs.

        System messages about the work are not among them: they stay in the model view.
        """
        return frozenset(
            held.info.id
            for held in self._with(Mark.SYSTEM)
            if held.info.place < position
            and isinstance(info := held.value.info, SystemMessage)
            and info.snapshot is not None
        )

    def summarised_since(self, position: int) -> bool:
        """Whether a compaction was completed after a position, as of what was last read."""
        return any(
            held.info.place > position and model_view.is_finished_summary(held.value)
            for held in self._with(Mark.SUMMARY)
        )

"""The messages of a session, kept from turn to turn: from the last compaction on, in the model's order.

What is read from the store once is not read again: a turn takes up what has changed since the last one, so
that at a thousand messages it costs about what it costs at ten. What must stay true: what is answered is what
the store holds. Where the changes cannot tell, everything is read anew.
"""

from collections.abc import Sequence
from typing import Any

from holdfast.runtime.history import model_view
from holdfast.schema.message import MessageWithParts, SystemMessage
from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery
from holdfast.store.record import Resync, SessionRecord, StoredMessage, StoredRecord

_BATCH = 500


class CachedMessage:
    """One message as it was last read; its value is made when somebody looks."""

    __slots__ = ("_value", "compacts", "info", "parts", "values")

    def __init__(self, info: StoredRecord) -> None:
        self.info = info
        self.parts: dict[str, StoredRecord] = {}
        self.values: dict[str, Any] = {}
        self.compacts = False
        """Whether it asks for a compaction, or is the summary of one."""
        self._value: MessageWithParts | None = None

    def take(self, record: StoredRecord) -> None:
        """A new state of the message or of one of its parts."""
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
    """Nothing by any mark: for each, the records that have it, with their messages."""
    return {mark: {} for mark in Mark if mark is not Mark.NONE}


class SessionHistory:
    """The messages of one session."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._cursor: str | None = None
        self._seen = 0
        self._held: dict[str, CachedMessage] = {}
        self._order: list[CachedMessage] = []
        self._values: list[MessageWithParts] = []
        self._at: dict[str, int] = {}
        """Where each message stands in the order, which is kept from reading to reading."""
        self._moved = False
        """Whether the order has to be made anew."""
        self._changed: set[str] = set()
        self._compacting: set[str] = set()
        self._marked = _unmarked()
        self.record: SessionRecord | None = None
        """The session, as of the last reading."""
        self.touched: set[str] = set()
        """Messages that came or changed since instructions beside the files they read were looked for and
        what was found was stored: who finds them takes them out then, not before."""

    async def read(self) -> list[MessageWithParts]:
        """Messages by their place, from the last compaction on, those that wait in the inbox included."""
        self.record = await self._store.session(self._session)
        if self._cursor is None or not await self._catch_up():
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
        """Note that a message came or changed. Nearly always it is the last, and the order stays as it is.

        One that came and cannot be read is not noted: each reading then finds it again, and names it.
        """
        id = held.info.id
        if id not in self._at and not (self._order and self._order[-1].info.place > held.info.place):
            self._values.append(held.value)  # First, since it may raise.
            self._at[id] = len(self._order)
            self._order.append(held)
        elif id not in self._at or (moved and self._order[-1] is not held):
            self._moved = True
        self._changed.add(id)

    async def with_(self, messages: Sequence[str]) -> list[MessageWithParts]:
        """What was last read, and these messages: a waiting prompt may stand before the last compaction."""
        for id in messages:
            if id not in self._held:
                page = await self._store.messages(MessageQuery(self._session, only=id))
                for message in page.messages:
                    self._hold(message, None)
                    self.touched.add(id)
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
        self.touched = set(self._held)

    def _hold(self, message: StoredMessage, known: CachedMessage | None) -> None:
        """Keep a message; what was decoded of it before and has not changed since is not decoded again."""
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
        """Take up what changed; False when everything has to be read anew."""
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
                return False  # A store may tell of a change later than it shows it: it is looked at whole.
            recent = False

    def _take(self, record: StoredRecord, *, fresh: bool) -> bool:
        """Take up one change; False when it may move the boundary of what the model sees."""
        if record.kind == "message":
            known = self._held.get(record.id)
            if record.mark is Mark.SUMMARY or (known is not None and known.info.mark is Mark.SUMMARY):
                return known is not None and known.info.seq == record.seq
            if known is None and not fresh:
                return False  # An old one, written again: its parts, and whether it is seen, are not known.
            if known is None:
                known = CachedMessage(record)
                self._place(known, moved=True)
                self._held[record.id] = known
            elif known.info.seq != record.seq:
                moved = known.info.place != record.place
                known.take(record)
                self._place(known, moved=moved)
            self._note(record, record.id)
            self.touched.add(record.id)
            return True
        if record.kind == "part" and (held := self._held.get(record.parent or "")) is not None:
            if record.id not in held.parts or held.parts[record.id].seq != record.seq:
                held.take(record)
                self._changed.add(held.info.id)
            self._note(record, held.info.id)
            self.touched.add(held.info.id)
        return True

    @property
    def has_compaction(self) -> bool:
        """Whether anybody has ever tried to compact what was last read."""
        return bool(self._compacting)

    @property
    def is_open(self) -> bool:
        """Whether anything of what was last read is unfinished: a message, a text, a call."""
        return bool(self._marked[Mark.OPEN])

    def _note(self, record: StoredRecord, message: str) -> None:
        """Remember a record by its mark, so that nobody has to look through all of them."""
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
        """The messages that came or changed since instructions beside their files were last stored."""
        fresh = [held for id in self.touched if (held := self._held.get(id)) is not None]
        return [held.value for held in sorted(fresh, key=lambda held: held.info.place)]

    def told_before(self, position: int) -> frozenset[str]:
        """What was told of the context before a position: in former epochs. Words about the work stay."""
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

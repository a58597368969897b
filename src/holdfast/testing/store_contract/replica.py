"""A follower's copy of a store, built from nothing but the feed: the judge of every feed test."""

from holdfast.schema.stored import Kind
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.store.record import Changed, Changes, Resync, StoredRecord

Key = tuple[str, Kind, str]
State = dict[Key, tuple[int, bytes]]


class Replica:
    """Applies changes strictly: a child before its parent, or an unasked-for repeat, is a fault."""

    def __init__(self) -> None:
        self.records: dict[Key, StoredRecord] = {}
        self.cursor: str | None = None
        self.delivered = 0
        self.repeated = 0
        self._mid_batch = False

    async def follow(self, store: Store, session: str | None = None, *, limit: int = 1000) -> None:
        """Read one page."""
        page = await store.changes(self.cursor, session, limit=limit)
        assert not isinstance(page, Resync), page
        self.apply(page)

    async def catch_up(self, store: Store, session: str | None = None, *, limit: int = 1000) -> None:
        """Read up to the end of a batch."""
        while True:
            page = await store.changes(self.cursor, session, limit=limit)
            assert not isinstance(page, Resync), page
            self.apply(page)
            if page.complete:
                return

    def apply(self, page: Changes) -> None:
        """Take over a page and its cursor."""
        lived = False
        for change in page.records:
            self.delivered += 1
            assert not (change.removed and lived), "tombstones come first"
            lived = lived or not change.removed
            self._apply(change)
        assert page.complete or page.records, "a page in the middle of a batch is not empty"
        self.cursor = page.cursor

    def _apply(self, change: Changed) -> None:
        record = change.record
        key = (record.session, record.kind, record.id)
        if change.removed:
            assert record.kind == "session" or record.data == b"", record
            self._drop(key)
            return
        assert record.data, record
        if record.kind == "part":
            assert record.parent is not None
            assert (record.session, "message", record.parent) in self.records, (
                f"{record.id} came before its message"
            )
        if record.kind != "session" and record.session.startswith("ses"):
            assert (record.session, "session", record.session) in self.records, (
                f"{record.id} before its session"
            )
        known = self.records.get(key)
        if known is not None and known == record:
            self.repeated += 1
        if change.created:
            self._drop(key)
        else:
            assert known is not None, f"{record.id} is said to be known"
        self.records[key] = record

    def _drop(self, key: Key) -> None:
        session, kind, id = key
        self.records.pop(key, None)
        if kind == "session":
            self.records = {each: record for each, record in self.records.items() if each[0] != session}
        elif kind == "message":
            self.records = {
                each: record
                for each, record in self.records.items()
                if not (each[0] == session and each[1] == "part" and record.parent == id)
            }


async def contents(store: Store, *scoped: tuple[str, Kind]) -> dict[Key, StoredRecord]:
    """The store's sessions, messages and parts read the ordinary way, and the named scoped records."""
    found: dict[Key, StoredRecord] = {}

    def add(record: StoredRecord | None) -> None:
        assert record is not None
        found[record.session, record.kind, record.id] = record

    cursor = None
    while True:
        page = await store.sessions(SessionQuery(archived=None, limit=1000, cursor=cursor))
        for session in page.sessions:
            add(await store.get(session.id, "session", session.id))
            for message in (await store.messages(MessageQuery(session.id))).messages:
                add(message.info)
                for part in message.parts:
                    add(part)
        cursor = page.next
        if cursor is None:
            break
    for scope, kind in scoped:
        for record in await store.select(kind, session=scope):
            add(record)
    return found

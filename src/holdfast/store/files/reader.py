"""Reads records: which ones and in what order from the index, what they say from the tree.

A damaged file fails its reader, or a page of messages with it, by name; in a list of records of a kind
only its own value fails. What spans sessions (lists, the feed, open records of the whole store) leaves it out
instead, so that every other session still works; a list of sessions says which.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import msgspec

from holdfast.errors import RecordCorrupt
from holdfast.schema.stored import Kind, Mark
from holdfast.store.files import file_format, layout
from holdfast.store.files.disk import Disk
from holdfast.store.files.index import Index
from holdfast.store.files.trace import ASIDE
from holdfast.store.kept_tail import tail_of
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.store.record import (
    Changes,
    JsonPage,
    MadePage,
    MessagePage,
    Resync,
    SessionPage,
    SessionRecord,
    StoredMessage,
    StoredRecord,
)
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_MASK
from holdfast.store.tables.feed import Feed
from holdfast.store.tables.reader import Range, Reader, shown
from holdfast.store.tables.search import Search

T = TypeVar("T")
R = TypeVar("R")

_MESSAGES = (
    "SELECT m.k, m.mark, m.seq, m.place, m.id, p.k, p.mark, p.seq, p.place, p.id, p.data "
    "FROM record m LEFT JOIN record p ON p.parent = m.k AND p.data IS NOT NULL {parts} "
    "WHERE m.k BETWEEN ?1 AND ?2 AND m.kind=1 AND m.data IS NOT NULL "
    "AND ifnull(m.place, m.k & 1099511627775) >= ?3 {shown} ORDER BY m.k, p.k"
)
_NAMES = (
    "SELECT m.id, p.id, p.data "
    "FROM record m LEFT JOIN record p ON p.parent = m.k AND p.data IS NOT NULL {parts} "
    "WHERE m.k BETWEEN ?1 AND ?2 AND m.kind=1 AND m.data IS NOT NULL "
    "AND ifnull(m.place, m.k & 1099511627775) >= ?3 {shown} ORDER BY m.k, p.k"
)
_SUMMARIES = (
    "SELECT id FROM record WHERE mark=2 AND kind=1 AND session=? AND data IS NOT NULL ORDER BY k DESC"
)


class TreeReader(Reader):
    """One read connection and the tree beside it."""

    def __init__(self, db: Connection, living: Callable[[str], bool], disk: Disk) -> None:
        super().__init__(db, living)
        self.content = Content(db, disk)

    def session(self, id: str) -> SessionRecord | None:
        found = super().session(id)
        return None if found is None else self._with_content(found)

    def _with_content(self, found: SessionRecord) -> SessionRecord:
        record = self.content.load(found.record())
        return msgspec.structs.replace(found, data=record.data)

    def sessions(self, query: SessionQuery) -> SessionPage:
        page = super().sessions(query)
        sound = tuple(_readable(self._with_content, page.sessions))
        if len(sound) == len(page.sessions):
            return SessionPage(sound, page.next)
        had = {session.id for session in sound}
        damaged = tuple(session.id for session in page.sessions if session.id not in had)
        return SessionPage(sound, page.next, damaged)

    def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        found = super().get(session, kind, id)
        return found if found is None or kind == "session" else self.content.load(found)

    def select(self, kind: Kind, session: str | None, mark: Mark | None) -> list[StoredRecord]:
        found = super().select(kind, session, mark)
        if session is None:
            return list(_readable(self.content.load, found))
        return [self._handed_on(record) for record in found]

    def _handed_on(self, record: StoredRecord) -> StoredRecord:
        """The record with its content; without any where that cannot be read, so that its value fails by name
        and those beside it do not.
        """
        try:
            return self.content.load(record)
        except RecordCorrupt:
            return msgspec.structs.replace(record, data=b"")

    def messages(self, query: MessageQuery) -> MessagePage:
        place = self._range(query)
        session, load = query.session, self._data if query.damaged else self.content.data
        messages: list[StoredMessage] = []
        statement = shown(_MESSAGES, system=query.system, hidden=place.hidden)
        found = self._db.execute(statement, (place.low, place.high, place.place))
        for k, rows in groupby(found, itemgetter(0)):
            position, parts, info = k & POSITION_MASK, [], None
            for _, mark, seq, mplace, id, pk, pmark, pseq, pplace, pid, aside in rows:
                if info is None:
                    data = load(f"message/{session}/{id}.json", "message", session, id, None)
                    info = StoredRecord(
                        session, "message", id, None, position, seq, mplace or position, Mark(mark), data
                    )
                if pk is not None:
                    folder = f"part/~{session}/{id}" if aside == ASIDE else f"part/{id}"
                    data = load(f"{folder}/{pid}.json", "part", session, pid, id)
                    at = pk & POSITION_MASK
                    parts.append(
                        StoredRecord(session, "part", pid, id, at, pseq, pplace or at, Mark(pmark), data)
                    )
            if info is not None:
                messages.append(StoredMessage(info, tuple(parts)))
        return MessagePage(tuple(messages), place.older, place.newer)

    def originals(self, session: str, below: int | None = None) -> list[StoredMessage]:
        return [
            StoredMessage(self.content.load(each.info), tuple(map(self.content.load, each.parts)))
            for each in super().originals(session, below)
        ]

    def _data(self, path: str, kind: Kind, session: str, id: str, parent: str | None) -> bytes:
        """The stored JSON in a file, empty where it cannot be read."""
        try:
            return self.content.data(path, kind, session, id, parent)
        except RecordCorrupt:
            return b""

    def messages_json(self, query: MessageQuery) -> JsonPage:
        """The same page as JSON: each file's bytes without our numbers, one join."""
        place = self._range(query)
        pieces: list[bytes] = []
        for each in self._json(query, place):
            pieces.append(b"," if pieces else b"[")
            pieces += each
        pieces.append(b"]" if pieces else b"[]")
        return JsonPage(b"".join(pieces), place.older, place.newer)

    def messages_made(self, query: MessageQuery, make: Callable[[bytes], T]) -> MadePage[T]:
        place = self._range(query)
        made = tuple(make(b"".join(each)) for each in self._json(query, place))
        return MadePage(made, place.older, place.newer)

    def _json(self, query: MessageQuery, place: Range) -> Iterator[list[bytes]]:
        """The JSON of each message, in pieces."""
        session, wire = query.session, self.content.wire
        statement = shown(_NAMES, system=query.system, hidden=place.hidden)
        rows = self._db.execute(statement, (place.low, place.high, place.place))
        for id, parts in groupby(rows, itemgetter(0)):
            pieces = [
                b'{"info":',
                wire(f"message/{session}/{id}.json", "message", session, id),
                b',"parts":[',
            ]
            for number, (_, part, aside) in enumerate(parts):
                if part is not None:
                    folder = f"part/~{session}/{id}" if aside == ASIDE else f"part/{id}"
                    pieces += (b"," if number else b"", wire(f"{folder}/{part}.json", "part", session, part))
            pieces.append(b"]}")
            yield pieces

    def _tail(self, n: int, session: str, below: int) -> int:
        summaries = [id for (id,) in self._db.execute(_SUMMARIES, (n,))]
        found = (self.get(session, "message", id) for id in summaries)
        return tail_of(
            (record for record in found if record is not None and record.place < below),
            lambda id: self.get(session, "message", id),
            lambda id: self._parts(n, session, id),
        )

    def _parts(self, n: int, session: str, message: str) -> Iterable[StoredRecord]:
        return [self.content.load(record) for record in super()._parts(n, session, message)]


class TreeFeed(Feed):
    """The feed, its records filled from the tree."""

    def __init__(self, db: Connection, disk: Disk) -> None:
        super().__init__(db)
        self._content = Content(db, disk)

    def changes(self, cursor: str | None, session: str | None, limit: int) -> Changes | Resync:
        found = super().changes(cursor, session, limit)
        if isinstance(found, Resync):
            return found
        records = _readable(
            lambda each: (
                each
                if each.removed
                else msgspec.structs.replace(each, record=self._content.load(each.record))
            ),
            found.records,
        )
        return Changes(tuple(records), found.cursor, found.complete)


def _readable(load: Callable[[T], R], items: Iterable[T]) -> Iterable[R]:
    for item in items:
        try:
            yield load(item)
        except RecordCorrupt:
            continue


_ASIDE = ASIDE.encode()


class Content:
    """The tree as one reader sees it. The caller holds the store's lock, so that files and rows agree."""

    def __init__(self, db: Connection, disk: Disk) -> None:
        self._db = db
        self._disk = disk

    def path(self, record: StoredRecord) -> str:
        """The file of a record that the index found: there `data` tells only whether it lies aside."""
        if record.kind == "session":
            project = self._db.execute("SELECT project FROM session WHERE id=?", (record.id,)).get
            return layout.session_path(project, record.id)
        return layout.record_path(
            record.kind, record.session, record.id, record.parent, aside=record.data == _ASIDE
        )

    def load(self, record: StoredRecord) -> StoredRecord:
        """The record with its content; `RecordCorrupt` names the file that cannot be read."""
        data = self.data(self.path(record), record.kind, record.session, record.id, record.parent)
        return StoredRecord(
            record.session,
            record.kind,
            record.id,
            record.parent,
            record.position,
            record.seq,
            record.place,
            record.mark,
            data,
        )

    def data(self, path: str, kind: Kind, session: str, id: str, parent: str | None) -> bytes:
        """The stored JSON in a file."""
        try:
            return file_format.data_of(kind, self._disk.read(path), id=id, session=session, parent=parent)
        except (OSError, *file_format.Damaged) as error:
            raise self.corrupt(session, kind, id, path, error) from error

    def wire(self, path: str, kind: Kind, session: str, id: str) -> bytes:
        """The whole wire JSON in a file."""
        try:
            return file_format.wire(self._disk.read(path))
        except (OSError, *file_format.Damaged) as error:
            raise self.corrupt(session, kind, id, path, error) from error

    def corrupt(self, session: str, kind: Kind, id: str, path: str, error: Exception) -> RecordCorrupt:
        """What to raise for a file that cannot be read."""
        why = "the file is missing" if isinstance(error, FileNotFoundError) else str(error)
        return RecordCorrupt(session, kind, id, f"{self._disk.root / path}: {why}")


class TreeSearch(Search):
    """The search index beside `index.db`: the tables' own, fed from the files."""

    def __init__(self, index: Index, disk: Disk) -> None:
        super().__init__(index)
        self._feed = TreeFeed(self._db, disk)

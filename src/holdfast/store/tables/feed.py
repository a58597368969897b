"""The feed, read from the rows: what changed after a number, without a second log.

A batch is one span of numbers, `after` to `until` (the head when it began). It is delivered in stages:
session tombstones, record tombstones, then what lives, by key. Keys put a parent before its children and
an older session before a younger one, and they make a long batch one walk over the table instead of a
sort for every page. What is created or removed while a batch is under way is left to the next one, which
begins at `until`; a record that changes meanwhile is delivered in its newest state and comes again in it.
"""

from collections.abc import Iterator
from typing import Any, cast

from holdfast.schema.stored import Mark
from holdfast.store.columns import stub
from holdfast.store.cursor import FeedCursor, Stage, parse_feed
from holdfast.store.record import Changed, Changes, Resync, StoredRecord
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK
from holdfast.store.tables.records import stored_record

_COLUMNS = "r.k, r.kind, r.mark, r.seq, r.place, r.id, CAST(r.data AS BLOB), p.id, r.at"
_FROM = "FROM record r LEFT JOIN record p ON p.k = r.parent "
_FEW = 200


class Feed:
    """Answers `changes` on one read connection, inside one read transaction."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def head(self) -> str:
        """The cursor of this moment."""
        incarnation, _, seq = self._state()
        return FeedCursor(incarnation, seq).text()

    def changes(self, cursor: str | None, session: str | None, limit: int) -> Changes | Resync:
        """See the port."""
        incarnation, horizon, seq = self._state()
        start = FeedCursor(incarnation, 0) if cursor is None else parse_feed(cursor)
        if start is None or start.incarnation != incarnation:
            return Resync("the cursor belongs to another store, or to this one before it was restored")
        if cursor is not None:
            if start.after > seq:
                return Resync("the cursor is ahead of the store")
            if start.after < horizon and not (start.after == 0 and start.until is not None):
                return Resync("the cursor is older than what the store remembers of removals")
        if start.until is None:
            start = FeedCursor(incarnation, start.after, seq, 0, 0)
        return _Batch(self._db, start, session, limit).read()

    def _state(self) -> tuple[str, int, int]:
        row = self._db.execute(
            "SELECT (SELECT value FROM store WHERE key='incarnation'), "
            "CAST((SELECT value FROM store WHERE key='horizon') AS INTEGER), max(head) FROM session"
        ).get
        return str(row[0]), int(row[1]), max(int(row[2] or 0), int(row[1]))


class _Batch:
    """One page of one batch."""

    def __init__(self, db: Connection, start: FeedCursor, session: str | None, limit: int) -> None:
        self._db = db
        self._start = start
        self._after, self._until = start.after, cast("int", start.until)
        self._session = session
        self._room = max(1, limit)
        self._found: list[Changed] = []

    def read(self) -> Changes:
        """Fill the page from the stage at which the last one stopped."""
        if self._after == self._until:
            return self._complete()
        stage, key = self._start.stage, self._start.key
        if stage == 0:
            stop = self._sessions_removed(key)
            if stop is not None:
                return self._page(0, stop)
            stage, key = 1, 0
        if stage == 1:
            stop = self._records_removed(key)
            if stop is not None:
                return self._page(1, stop)
            key = 0
        stop = self._living(key)
        return self._complete() if stop is None else self._page(2, stop)

    def _complete(self) -> Changes:
        cursor = FeedCursor(self._start.incarnation, self._until)
        return Changes(tuple(self._found), cursor.text(), complete=True)

    def _page(self, stage: Stage, key: int) -> Changes:
        cursor = FeedCursor(self._start.incarnation, self._after, self._until, stage, key)
        return Changes(tuple(self._found), cursor.text(), complete=False)

    def _scope(self, column: str) -> tuple[str, tuple[str, ...]]:
        return ("", ()) if self._session is None else (f" AND {column}=?", (self._session,))

    def _sessions_removed(self, key: int) -> int | None:
        clause, bindings = self._scope("id")
        for id, position, seq, project, directory, at in self._db.execute(
            "SELECT id, position, seq, project, directory, at FROM session WHERE data IS NULL AND seq>? "
            "AND seq<=?" + clause + " ORDER BY seq",
            (max(self._after, key), self._until, *bindings),
        ):
            if self._room == 0:
                return key
            key = seq
            # What was born and removed within the span was never seen; its tombstone does no harm.
            data = stub(project, directory, at)
            record = StoredRecord(id, "session", id, None, position, seq, position, Mark.NONE, data)
            self._add(record, removed=True)
        return None

    def _records_removed(self, key: int) -> int | None:
        clause, bindings = self._scope("s.id")
        for row in self._db.execute(
            f"SELECT {_COLUMNS}, s.id {_FROM} JOIN session s ON s.n=r.session "
            "WHERE r.data IS NULL AND r.seq>? AND r.seq<=?" + clause + " ORDER BY r.seq",
            (max(self._after, key), self._until, *bindings),
        ):
            if self._room == 0:
                return key
            key = row[3]
            self._add(stored_record(row[9], row), removed=True)
        return None

    def _living(self, key: int) -> int | None:
        begin = key >> POSITION_BITS
        for n, id, scope, position, seq, data, at in self._sessions(begin):
            if n != begin:
                if self._room == 0:
                    return (int(n) << POSITION_BITS) - 1
                if scope == 0 and seq > self._after:
                    record = StoredRecord(id, "session", id, None, position, seq, position, Mark.NONE, data)
                    self._add(record, at=at)
            stop = self._records(n, id, max(key, n << POSITION_BITS))
            if stop is not None:
                return stop
        return None

    def _sessions(self, begin: int) -> Iterator[tuple[int, str, int, int, int, bytes, int | None]]:
        """Sessions with a change, by number: by the head's index when few changed, else one walk."""
        clause, bindings = self._scope("id")
        columns = "SELECT n, id, scope, position, seq, CAST(data AS BLOB), at FROM session "
        where = "WHERE head>? AND n>=? AND position<=? AND data IS NOT NULL" + clause + " ORDER BY n"
        if self._session is None:
            few = (
                self._db.execute(
                    "SELECT count(*) FROM (SELECT 1 FROM session WHERE head>? LIMIT ?)", (self._after, _FEW)
                ).get
                < _FEW
            )
            columns += "INDEXED BY session_head " if few else "NOT INDEXED "
        return cast(
            "Iterator[tuple[int, str, int, int, int, bytes, int | None]]",
            self._db.execute(columns + where, (self._after, begin, self._until, *bindings)),
        )

    def _records(self, n: int, id: str, key: int) -> int | None:
        """The changed records of a session after a key; a key at which the page ends."""
        born = n << POSITION_BITS | self._after  # What lies behind it was created after the cursor.
        rows = self._changed(n, key, born) if key < born else []
        wanted = self._room + 1 - len(rows)
        if wanted > 0:
            rows += self._db.execute(
                f"SELECT {_COLUMNS} {_FROM} WHERE r.k>? AND r.k<=? AND r.data IS NOT NULL "
                "ORDER BY r.k LIMIT ?",
                (max(key, born), n << POSITION_BITS | self._until, wanted),
            ).fetchall()
        for row in rows:
            if self._room == 0:
                return key
            key = row[0]
            self._add(stored_record(id, row), at=row[8])
        return None

    def _changed(self, n: int, key: int, born: int) -> list[tuple[Any, ...]]:
        """Records from before the cursor that were written again after it."""
        wanted = self._room + 1
        where = f"session=? AND seq>? AND seq<>(k & {POSITION_MASK})"
        # Few changes among many records: by number, then sorted. Many: one walk along the keys.
        count = self._db.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM record INDEXED BY record_moved WHERE {where} LIMIT ?)",
            (n, self._after, wanted),
        ).get
        source = "INDEXED BY record_moved" if count < wanted else "NOT INDEXED"
        rows: list[tuple[Any, ...]] = self._db.execute(
            f"SELECT {_COLUMNS} FROM record r {source} LEFT JOIN record p ON p.k = r.parent "
            f"WHERE r.session=? AND r.seq>? AND r.seq<>(r.k & {POSITION_MASK}) "
            "AND r.k>? AND r.k<=? AND r.data IS NOT NULL ORDER BY r.k LIMIT ?",
            (n, self._after, key, born, wanted),
        ).fetchall()
        return rows

    def _add(self, record: StoredRecord, *, removed: bool = False, at: int | None = None) -> None:
        """`at` is of a living record: when its former life was removed. From nothing, that is not known."""
        self._room -= 1
        created = not removed and record.position > self._after
        again = created and at is not None and self._after > 0
        self._found.append(Changed(record, created=created, removed=removed, again=again))

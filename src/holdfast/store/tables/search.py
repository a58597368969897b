"""Full-text search in a file of its own beside the store: rebuildable, behind the commits, never in them.

The index keeps no text (contentless), so a snippet is cut from the record itself. It follows the store by
the feed's own cursor; when that ends in a resync, the index is rebuilt. Row ids are the records' keys,
and a session's title stands at its key with position 0. Users who may only read a store have an index in
memory, for as long as they have the store open.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import apsw

from holdfast.person.private import make_file
from holdfast.schema.stored import KINDS, Kind
from holdfast.store.columns import KIND_NUMBER
from holdfast.store.cursor import parse_feed
from holdfast.store.query import SearchQuery
from holdfast.store.record import Changed, Found, Hit, Resync
from holdfast.store.search_text import query_words, searchable, snippet, words_of
from holdfast.store.sqlite.database import Database, translated
from holdfast.store.tables.connection import Connection, set_pragmas
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK
from holdfast.store.tables.feed import Feed

CHUNK = 500
CATCH_UP_S = 0.5
"""How long a search lets its index catch up before it answers from what there is."""
RANKED_MAX = 5_000
"""The best hits are sought among so many of the newest: to rate every text with a common word takes long."""
Name = tuple[str, Kind, str]
"""Session, kind and id of a record."""
_INDEXED = frozenset(("session", "part"))

_TABLES = """
CREATE TABLE IF NOT EXISTS {name}.upto(one INTEGER PRIMARY KEY CHECK (one = 1), cursor TEXT);
CREATE TABLE IF NOT EXISTS {name}.doc(k INTEGER PRIMARY KEY, parent INTEGER);
CREATE INDEX IF NOT EXISTS {name}.doc_parent ON doc(parent) WHERE parent IS NOT NULL;
CREATE VIRTUAL TABLE IF NOT EXISTS {name}.words USING fts5(
  body, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 0');
"""

_FIND = """
SELECT r.k, r.kind, r.id, CAST(r.data AS BLOB), m.id, s.id, s.title, s.n
FROM found.words JOIN session s ON s.n = (words.rowid >> 40) LEFT JOIN record r ON r.k = words.rowid
LEFT JOIN record m ON m.k = r.parent
WHERE words MATCH ?1 AND s.data IS NOT NULL AND (r.data IS NOT NULL OR (words.rowid & 1099511627775) = 0)
"""


class Search:
    """One connection to the store with the index attached."""

    def __init__(self, database: Database) -> None:
        self._path = database.search_path
        # What is attached can be written only if the connection may; a file that may not stays as it is.
        self._store = database.connect(readonly=not database.readonly)
        self._db: Connection = self._store
        if database.readonly:
            self._index: apsw.Connection = self._store
            self._db.execute("ATTACH ':memory:' AS found")
            self._db.execute(_TABLES.format(name="found"))
        else:
            try:
                self._index = self._open()
            except (apsw.CorruptError, apsw.NotADBError):
                self._path.unlink(missing_ok=True)
                self._index = self._open()
            self._db.execute("ATTACH ? AS found", (str(self._path),))
        self._feed = Feed(self._db)

    def _open(self) -> apsw.Connection:
        make_file(self._path)
        index = apsw.Connection(str(self._path))
        index.set_busy_timeout(10_000)
        set_pragmas(index, "journal_mode=WAL", "synchronous=NORMAL", "journal_size_limit=4194304")
        index.execute(_TABLES.format(name="main"))
        return index

    def catch_up(self, *, records: int | None = None, seconds: float | None = None) -> bool:
        """Index what changed since the last time, or that many of it, or as long; whether nothing is left."""
        until_s = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._index:
                self._index.execute("UPDATE upto SET one=1")  # Take the write lock before the cursor is read.
                cursor = self._index.execute("SELECT cursor FROM upto").get
                changes = self._feed.changes(cursor, None, records or CHUNK)
                if isinstance(changes, Resync):
                    self._index.execute(
                        "DELETE FROM upto; DELETE FROM doc; INSERT INTO words(words) VALUES ('delete-all')"
                    )
                    continue
                start = None if cursor is None else parse_feed(cursor)
                if start is None or start.after == 0:
                    self._take_first(changes.records)
                else:
                    for change in changes.records:
                        self._take(change)
                if changes.cursor != cursor:
                    self._index.execute("INSERT OR REPLACE INTO upto VALUES (1, ?)", (changes.cursor,))
                if changes.complete or records is not None:
                    return changes.complete
            if until_s is not None and time.monotonic() >= until_s:
                return False

    def share(self) -> float:
        """How much of the store is indexed, roughly: below 1 while anything is left."""
        cursor = self._index.execute("SELECT cursor FROM upto").get
        at = None if cursor is None else parse_feed(cursor)
        head, last = self._db.execute("SELECT max(head), max(n) FROM session").get
        if at is None:
            return 0.0
        done = float(at.after)
        if at.until is not None:
            done += (at.until - at.after) * (at.key >> POSITION_BITS) / max(1, last)
        elif at.after >= head:
            return 1.0
        return min(0.99, round(done / int(head), 2))

    def _take_first(self, changes: Sequence[Changed]) -> None:
        """Index what lives, into an index that has nothing of it: a few statements for many records."""
        numbers: dict[str, int | None] = {}
        docs, bodies = list[tuple[int, int | None]](), list[tuple[int, str]]()
        for change in changes:
            record = change.record
            if record.kind not in _INDEXED or change.removed:
                continue
            words = words_of(searchable(record.kind, record.data))
            if not words:
                continue
            if record.session not in numbers:
                numbers[record.session] = self._number(record.session)
            n = numbers[record.session]
            if n is None:
                continue
            k = n << POSITION_BITS | (0 if record.kind == "session" else record.position)
            docs.append((k, self._parent(k) if record.kind == "part" else None))
            bodies.append((k, " ".join(words)))
        self._index.executemany("INSERT INTO doc VALUES (?,?)", docs)
        self._index.executemany("INSERT INTO words(rowid, body) VALUES (?,?)", bodies)

    def _number(self, session: str) -> int | None:
        found = self._db.execute("SELECT n FROM session WHERE id=?", (session,)).get
        return None if found is None else int(found)

    def _parent(self, k: int) -> int | None:
        found = self._db.execute("SELECT parent FROM record WHERE k=?", (k,)).get
        return None if found is None else int(found)

    def forget(self, names: Sequence[Name]) -> None:
        """Drop what was removed, however far the index has come."""
        with self._index:
            self._index.execute("UPDATE upto SET one=1")  # The write lock first: what was read may not age.
            for session, kind, id in names:
                n = self._number(session)
                if n is None:
                    continue
                k = n << POSITION_BITS
                if kind != "session":
                    k = self._db.execute(
                        "SELECT k FROM record WHERE session=? AND id=? AND kind=?", (n, id, KIND_NUMBER[kind])
                    ).get
                if k is not None:
                    self._forget(k, whole=kind == "session")

    def _take(self, change: Changed) -> None:
        record = change.record
        if record.kind not in _INDEXED and not change.removed:
            return
        n = self._number(record.session)
        if n is None:
            return
        k = n << POSITION_BITS | (0 if record.kind == "session" else record.position)
        if change.removed or change.created:
            self._forget(k, whole=record.kind == "session")
        elif record.kind in _INDEXED:
            self._drop("k=?", k)
        if change.removed:
            return
        words = words_of(searchable(record.kind, record.data))
        if words:
            parent = self._parent(k) if record.kind == "part" else None
            self._index.execute("INSERT INTO doc VALUES (?,?)", (k, parent))
            self._index.execute("INSERT INTO words(rowid, body) VALUES (?,?)", (k, " ".join(words)))

    def _forget(self, k: int, *, whole: bool) -> None:
        """Drop what stands at a key and below it: a removed message takes its parts along."""
        if whole:
            self._drop("k BETWEEN ? AND ?", k, k | POSITION_MASK)
        else:
            self._drop("k=?1 OR parent=?1", k)

    def _drop(self, where: str, *bindings: int) -> None:
        for (k,) in self._index.execute(f"SELECT k FROM doc WHERE {where}", bindings).fetchall():
            self._index.execute("DELETE FROM words WHERE rowid=?", (k,))
            self._index.execute("DELETE FROM doc WHERE k=?", (k,))

    def search(self, query: SearchQuery, load: Callable[[str, str, str], bytes] | None = None) -> Found:
        """The hits, after catching up as far as that is quick.

        The user's text is only ever words, quoted one by one.
        `load(session, kind, id)` fetches the JSON for a store that keeps it outside the tables.
        """
        words = query_words(query.text)
        if not words:
            return Found()
        try:
            complete = self.catch_up(seconds=CATCH_UP_S)
            hits = tuple(self._hit(row, words, load) for row in self._rows(query, words))
            return Found(hits, 1.0 if complete else self.share())
        except apsw.Error as error:
            raise translated(error, self._path) from error

    def _rows(self, query: SearchQuery, words: list[str]) -> list[tuple[Any, ...]]:
        sql = _FIND
        bindings: list[object] = [" ".join(f'"{word}"' for word in words)]
        if query.project is not None:
            sql += " AND s.project=?2"
            bindings.append(query.project)
        if query.session is not None:
            n = self._db.execute("SELECT n FROM session WHERE id=?", (query.session,)).get or 0
            sql += f" AND words.rowid BETWEEN {n << POSITION_BITS} AND {n << POSITION_BITS | POSITION_MASK}"
        order = "words.rowid DESC"
        if query.order == "best":
            order = "rank"
            matching = sql[sql.index("FROM") :]
            newest = f"SELECT words.rowid AS k {matching} ORDER BY words.rowid DESC LIMIT {RANKED_MAX}"
            least = self._db.execute(f"SELECT min(k) FROM ({newest})", bindings).get
            sql += f" AND words.rowid >= {least or 0}"
        limit = min(max(query.limit, 1), 1000)
        found: list[tuple[Any, ...]] = self._db.execute(
            f"{sql} ORDER BY {order} LIMIT {limit}", bindings
        ).fetchall()
        return found

    def _hit(
        self, row: tuple[Any, ...], words: list[str], load: Callable[[str, str, str], bytes] | None
    ) -> Hit:
        _, kind, id, data, message, session, title, _ = row
        if id is None:
            return Hit(session, title, None, None, snippet(title, words))
        name = KINDS[kind]
        body = data if load is None else load(session, name, id)
        return Hit(session, title, message, id, snippet(searchable(name, body), words))

    def close(self) -> None:
        """Close both files."""
        self._store.close()
        self._index.close()

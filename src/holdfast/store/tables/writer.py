"""Applies batches to the tables, inside a transaction that the caller begins and commits.

What must stay true: numbers are taken inside the transaction, so their order is the order of commits; a
parent's number is smaller than its children's; a row whose `data` is NULL is a tombstone.
"""

from collections.abc import Callable

from holdfast.clock import Clock
from holdfast.errors import Conflict, InvariantBroken, NotFound
from holdfast.schema import ids
from holdfast.schema.stored import Kind
from holdfast.store.batch import (
    Batch,
    Change,
    Copies,
    Expectation,
    Put,
    Receipt,
    Remove,
    Rising,
    Settled,
    Unchanged,
    Unclaimed,
    scope_of,
)
from holdfast.store.columns import KIND_NUMBER, MESSAGE, PART, SCOPE_NUMBER, SessionColumns, columns_of
from holdfast.store.record import StoredRecord
from holdfast.store.sqlite.recent import Keyed
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.copies import check_originals, check_rising, copied, copy_rows
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK
from holdfast.store.tables.session_row import SessionRow, check_fence, living_row, session_values
from holdfast.store.tables.sweep import sweep

Known = tuple[int, int | None, int | None, bool, int | None]
"""Key, parent, place, whether it lives, when it or its former life was removed."""


class Writer:
    """Turns batches into rows on one connection.

    `inline` is False for a store that keeps the JSON elsewhere and uses these tables as its index. What a
    transaction wrote is in `written` until the next one begins.
    """

    def __init__(
        self, db: Connection, clock: Clock, living: Callable[[str], bool], *, inline: bool = True
    ) -> None:
        self._db = db
        self._clock = clock
        self._living = living
        self._inline = inline
        self._seq = 0
        self.start = 0
        """The number at which the transaction began."""
        self.incarnation = ""
        self.written: list[StoredRecord] = []
        self.rows: dict[str, int] = {}
        """The numbers of the sessions in `written`."""
        self.removes = False
        """Whether the transaction removed something, or made again what had been removed."""
        self.copied = False
        """Whether it copied records, which are in `written` only where their content is kept elsewhere."""
        self.revived: dict[int, int] = {}
        """By position, when the former life of a record in `written` was removed."""
        self.erased: list[tuple[str, int, int]] = []

    def begin(self) -> None:
        """Read the counter; call it first in each transaction."""
        head, horizon, self.incarnation = self._db.execute(
            "SELECT max(head), (SELECT value FROM store WHERE key='horizon'), "
            "(SELECT value FROM store WHERE key='incarnation') FROM session"
        ).get
        self.start = self._seq = max(head or 0, int(horizon))
        self.written.clear()
        self.rows.clear()
        self.revived.clear()
        self.erased.clear()
        self.removes = self.copied = False

    def number(self, count: int = 1) -> int:
        """The next number of the store, or the last of so many."""
        self._seq += count
        if self._seq > POSITION_MASK:
            raise InvariantBroken("the store has used up its numbers")
        return self._seq

    def apply(self, batch: Batch) -> Receipt:
        """Write one well-formed batch (`check_batch`); an exception leaves the transaction to be undone."""
        rows = {id: self.row(id) for id in batch.sessions()}
        if batch.fence is not None:
            check_fence(rows[batch.fence.session], batch.fence)
        rising = {each.session for each in batch.expect if isinstance(each, Rising)}
        for expectation in batch.expect:
            self._expect(expectation, rows[expectation.session])
        messages: dict[tuple[int, str], int] = {}
        numbers = tuple(self._change(change, rows, messages, rising) for change in batch.changes)
        for row in rows.values():
            if row is not None and row.touched:
                self._db.execute("UPDATE session SET head=?, top=? WHERE n=?", (row.head, row.top, row.n))
        if batch.release and batch.fence is not None:
            self._db.execute("UPDATE session SET owner=NULL WHERE id=?", (batch.fence.session,))
        return Receipt(numbers)

    def _copies(self, copies: Copies, rows: dict[str, SessionRow | None]) -> int:
        """Copy messages and parts; the last number."""
        row, source = living_row(rows, copies.session), living_row(rows, copies.source)
        check_originals(self._db, copies, source.n)
        row.top = check_rising(copies, row.top)
        first, row.head = self._seq + 1, self.number(len(copies.originals))
        row.touched = self.copied = True
        copy_rows(self._db, copies, row.n, first, inline=self._inline)
        if not self._inline:
            self.rows[copies.session] = row.n
            self.written += copied(copies, first)
        return row.head

    def row(self, id: str) -> SessionRow | None:
        """The session's row, a tombstone included."""
        found = self._db.execute(
            "SELECT n, id, head, top, owner, fence, data IS NOT NULL FROM session WHERE id=?", (id,)
        ).get
        return None if found is None else SessionRow(*found)

    def _expect(self, expectation: Expectation, row: SessionRow | None) -> None:
        match expectation:
            case Unchanged(kind=kind, id=id, seq=seq):
                latest = self._latest(row, kind, id)
                if latest != seq:
                    raise Conflict(
                        f"{kind} {id} changed meanwhile (number {latest}, expected {seq}); read it again"
                    )
            case Settled(kind=kind):
                if (
                    row is not None
                    and self._db.execute(
                        "SELECT 1 FROM record WHERE mark>0 AND mark=1 AND kind=? AND session=?",
                        (KIND_NUMBER[kind], row.n),
                    ).get
                ):
                    raise Conflict(f"session {row.id} still has an open {kind}")
            case Unclaimed():
                if row is not None and row.owner is not None:
                    self._free(row)
            case Rising():
                pass

    def _free(self, row: SessionRow) -> None:
        """Refuse while a living owner runs the session; end the claim of one that no longer lives."""
        if self._living(row.owner or ""):
            raise Conflict(f"session {row.id} is busy: an owner runs it; wait for it or interrupt it")
        self._db.execute("UPDATE session SET owner=NULL WHERE n=?", (row.n,))

    def _latest(self, row: SessionRow | None, kind: Kind, id: str) -> int:
        if row is None or not row.live:
            return 0
        if kind == "session":
            found = self._db.execute("SELECT seq FROM session WHERE n=?", (row.n,)).get
        else:
            found = self._db.execute(
                "SELECT seq FROM record WHERE session=? AND id=? AND kind=? AND data IS NOT NULL",
                (row.n, id, KIND_NUMBER[kind]),
            ).get
        return int(found or 0)

    def _change(
        self,
        change: Change,
        rows: dict[str, SessionRow | None],
        messages: dict[tuple[int, str], int],
        rising: set[str],
    ) -> int:
        if isinstance(change, Copies):
            return self._copies(change, rows)
        row = rows[change.session]
        if isinstance(change, Remove):
            return 0 if row is None or not row.live else self._remove(change, row)
        if change.kind == "session":
            seq, rows[change.session] = self._put_session(change, row)
            return seq
        if row is None or not row.live:
            if scope_of(change.session) == "session":
                raise NotFound(f"session {change.session} does not exist")
            row = rows[change.session] = self._open_scope(change.session)
        return self._put(change, row, messages, is_rising=change.session in rising)

    def _put(
        self, put: Put, row: SessionRow, messages: dict[tuple[int, str], int], *, is_rising: bool
    ) -> int:
        kind = KIND_NUMBER[put.kind]
        parent = self._parent(put, row, messages) if kind == PART else None
        seq = self.number()
        row.head, row.touched = seq, True
        found = self._known(row, kind, put.id)
        data = put.data.decode() if self._inline else ""
        at = None if found is None else found[4]
        if found is not None and found[3]:
            k, had, place, *_ = found
            if had != parent:
                raise Conflict(f"part {put.id} belongs to another message; a part cannot change its message")
            place = seq if put.placed else place
            self._db.execute(
                "UPDATE record SET mark=?, seq=?, place=?, data=? WHERE k=?",
                (int(put.mark), seq, place, data, k),
            )
        else:
            if found is not None:  # A tombstone: the id is made again, at the end of the list.
                self.removes = True
                self._db.execute("DELETE FROM record WHERE k=?", (found[0],))
            if kind in (MESSAGE, PART):
                body = ids.body(put.id)
                if is_rising and body <= row.top:
                    raise Conflict(
                        f"{put.kind} id {put.id} is not above the ids of session {row.id}; mint it anew"
                    )
                row.top = max(row.top, body)
            k, place = row.n << POSITION_BITS | seq, None
            self._db.execute(
                "INSERT INTO record(k, session, kind, mark, seq, parent, at, id, data) "
                "VALUES (?,?,?,?,?,?,?,?,?)",
                (k, row.n, kind, int(put.mark), seq, parent, at, put.id, data),
            )
        if kind == MESSAGE:
            messages[row.n, put.id] = k
        self._note(put, row.n, k & POSITION_MASK, seq, place)
        if at is not None:
            self.revived[k & POSITION_MASK] = at
        return seq

    def _known(self, row: SessionRow, kind: int, id: str) -> Known | None:
        """The record of that name, a tombstone included."""
        if kind <= PART and ids.body(id) > row.top:
            return None  # Greater than every message and part id that the session has had.
        found: Known | None = self._db.execute(
            "SELECT k, parent, place, data IS NOT NULL, at FROM record WHERE session=? AND id=? AND kind=?",
            (row.n, id, kind),
        ).get
        return found

    def _parent(self, put: Put, row: SessionRow, messages: dict[tuple[int, str], int]) -> int:
        assert put.parent is not None, "check_batch saw to it"
        known = messages.get((row.n, put.parent))
        if known is None:
            known = self._db.execute(
                "SELECT k FROM record WHERE session=? AND id=? AND kind=? AND data IS NOT NULL",
                (row.n, put.parent, MESSAGE),
            ).get
            if known is None:
                raise NotFound(f"message {put.parent} of part {put.id} does not exist in session {row.id}")
            messages[row.n, put.parent] = known
        return known

    def _remove(self, remove: Remove, row: SessionRow) -> int:
        found = self._db.execute(
            "SELECT k, parent FROM record WHERE session=? AND id=? AND kind=? AND data IS NOT NULL",
            (row.n, remove.id, KIND_NUMBER[remove.kind]),
        ).get
        if found is None:
            return 0
        k, parent = found
        seq = self.number()
        row.head, row.touched = seq, True
        if remove.kind == "message":
            self._db.execute("DELETE FROM record WHERE parent=?", (k,))
        self._db.execute(
            "UPDATE record SET data=NULL, mark=0, seq=?, at=? WHERE k=?", (seq, self._clock.now_ms(), k)
        )
        self.removes = True
        message = self._db.execute("SELECT id FROM record WHERE k=?", (parent,)).get if parent else None
        put = Put(remove.session, remove.kind, remove.id, b"", message)
        self._note(put, row.n, k & POSITION_MASK, seq, None)
        return seq

    def _put_session(self, put: Put, row: SessionRow | None) -> tuple[int, SessionRow]:
        columns = columns_of(put.id, put.data)
        seq = self.number()
        position = seq
        data = put.data.decode() if self._inline else ""
        values = session_values(columns)
        if row is not None and row.live:
            self._check_same_parent(row, columns)
            self._db.execute(
                "UPDATE session SET seq=?, head=?, project=?, directory=?, path=?, slug=?, title=?, "
                "placement=?, updated=?, archived=?, agent_run=?, parent=?, data=? WHERE n=?",
                (seq, seq, *values, data, row.n),
            )
            row.head, row.touched = seq, True
            position = self._db.execute("SELECT position FROM session WHERE n=?", (row.n,)).get
        else:
            if columns.parent is not None and not self._is_live(columns.parent):
                raise NotFound(f"parent session {columns.parent} of {put.id} does not exist")
            fence, at = 0, None
            if row is not None:  # A tombstone: its fence numbers stay used, or an old runner could come back.
                self.removes = True
                fence = row.fence
                at = self._db.execute("SELECT at FROM session WHERE n=?", (row.n,)).get
                self._db.execute("DELETE FROM session WHERE n=?", (row.n,))
            self._db.execute(
                "INSERT INTO session(id, position, seq, head, fence, at, project, directory, path, slug, "
                "title, placement, updated, archived, agent_run, parent, data) "
                "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (put.id, seq, seq, seq, fence, at, *values, data),
            )
            n = self._db.last_insert_rowid()
            row = SessionRow(n, put.id, seq, "", None, fence, live=True)
        self._note(put, row.n, position, seq, None)
        return seq, row

    def _check_same_parent(self, row: SessionRow, columns: SessionColumns) -> None:
        had = self._db.execute("SELECT parent FROM session WHERE n=?", (row.n,)).get
        if had != columns.parent:
            raise Conflict(f"session {row.id} cannot change its parent")

    def _is_live(self, id: str) -> bool:
        found = self._db.execute("SELECT data IS NOT NULL FROM session WHERE id=? AND scope=0", (id,)).get
        return bool(found)

    def _open_scope(self, id: str) -> SessionRow:
        seq = self.number()
        self._db.execute(
            "INSERT INTO session(id, scope, position, seq, head, data) VALUES (?,?,?,?,?,'')",
            (id, SCOPE_NUMBER[scope_of(id)], seq, seq, seq),
        )
        return SessionRow(self._db.last_insert_rowid(), id, seq, "", None, 0, live=True)

    def erase(self, roots: list[SessionRow]) -> list[int]:
        """Turn sessions into tombstones and drop their records."""
        self.removes = True
        numbers = []
        for row in roots:
            seq = self.number()
            position = self._db.execute("SELECT position FROM session WHERE n=?", (row.n,)).get
            low = row.n << POSITION_BITS
            self._db.execute("DELETE FROM record WHERE k BETWEEN ? AND ?", (low, low | POSITION_MASK))
            # Project and directory stay, so that followers of a directory learn of the removal.
            self._db.execute(
                "UPDATE session SET data=NULL, seq=?, head=?, top='', owner=NULL, at=?, path=NULL, "
                "slug=NULL, title=NULL, parent=NULL, placement=NULL, updated=NULL, archived=NULL, "
                "agent_run=NULL WHERE n=?",
                (seq, seq, self._clock.now_ms(), row.n),
            )
            self.erased.append((row.id, position, seq))
            numbers.append(seq)
        return numbers

    def sweep(self, before_ms: int) -> None:
        """Forget what was removed before a moment."""
        self.removes = True
        sweep(self._db, before_ms)

    def keyed(self) -> tuple[Keyed, ...]:
        """What was written, each under the key by which changes are ordered."""
        return tuple((self._key(record), record) for record in self.written)

    def _key(self, record: StoredRecord) -> int:
        first = self.rows[record.session] << POSITION_BITS
        return first if record.kind == "session" else first | record.position

    def _note(self, put: Put, row: int, position: int, seq: int, place: int | None) -> None:
        self.rows[put.session] = row
        self.written.append(
            StoredRecord(
                put.session,
                put.kind,
                put.id,
                put.parent,
                position,
                seq,
                place or position,
                put.mark,
                put.data,
            )
        )

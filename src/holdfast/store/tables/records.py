"""Reads sessions and single records from the tables. Plain and synchronous, so that a simple command needs no
event loop.

Each public method is one snapshot: the caller wraps it in a transaction when it makes several
statements. Stored JSON is handed on as it is.
"""

from collections.abc import Callable
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.schema.stored import KINDS, Kind, Mark
from holdfast.store.check import check_int, check_kind
from holdfast.store.columns import KIND_NUMBER
from holdfast.store.cursor import list_text, parse_list
from holdfast.store.query import SessionQuery, check_limit
from holdfast.store.record import SessionPage, SessionRecord, StoredRecord
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK

_SESSION = "SELECT n, id, position, seq, head, top, owner, CAST(data AS BLOB), updated, fence FROM session "
RECORD = (
    "SELECT r.k, r.kind, r.mark, r.seq, r.place, r.id, CAST(r.data AS BLOB), p.id FROM record r "
    "LEFT JOIN record p ON p.k = r.parent "
)


class RecordReader:
    """One read connection."""

    def __init__(self, db: Connection, living: Callable[[str], bool]) -> None:
        self._db = db
        self._living = living

    def session(self, id: str) -> SessionRecord | None:
        """The session, if it exists."""
        row = self._db.execute(_SESSION + "WHERE id=? AND scope=0 AND data IS NOT NULL", (id,)).get
        return None if row is None else self._session(row)

    def _session(self, row: tuple[Any, ...]) -> SessionRecord:
        _, id, position, seq, head, top, owner, data, _, claim = row
        living = owner if owner is not None and self._living(str(owner)) else None
        return SessionRecord(id, position, seq, head, top, living, data, claim)

    def sessions(self, query: SessionQuery) -> SessionPage:
        """A page of sessions, the last updated first."""
        limit = check_limit(query.limit)
        where, bindings = _session_filter(query)
        # Few sessions have one name, or one parent: they are found by its index, and sorted.
        named = query.slug is not None or query.id_prefix is not None or query.parent is not None
        order = "+updated DESC, n DESC" if named else "updated DESC, n DESC"
        rows = self._db.execute(
            f"{_SESSION}{where} ORDER BY {order} LIMIT ?", (*bindings, limit + 1)
        ).fetchall()
        more = len(rows) > limit
        last = rows[limit - 1] if more else None
        return SessionPage(
            tuple(self._session(row) for row in rows[:limit]),
            None if last is None else list_text(last[8], last[0]),
        )

    def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        """One record."""
        if kind == "session":
            found = self.session(id) if session == id else None
            return None if found is None else found.record()
        check_kind(kind)
        n = self.number(session)
        row = (
            n
            and self._db.execute(
                RECORD + "WHERE r.session=? AND r.id=? AND r.kind=? AND r.data IS NOT NULL",
                (n, id, KIND_NUMBER[kind]),
            ).get
        )
        return stored_record(session, row) if row else None

    def select(self, kind: Kind, session: str | None, mark: Mark | None) -> list[StoredRecord]:
        """Every record of a kind."""
        check_kind(kind)
        where, bindings = "r.kind=? AND r.data IS NOT NULL", [KIND_NUMBER[kind]]
        if mark is not None:
            where += " AND r.mark>0 AND r.mark=?"  # Without the first the partial index is not used.
            bindings.append(int(mark))
        if session is not None:
            n = self.number(session)
            if n is None:
                return []
            if mark is not None or kind not in ("message", "part"):
                few = "" if kind in ("message", "part") else " AND r.kind>2"  # Of the index `record_few`.
                rows = self._db.execute(
                    RECORD + f"WHERE {where}{few} AND r.session=? ORDER BY r.k", (*bindings, n)
                )
            else:
                rows = self._db.execute(
                    RECORD + f"WHERE {where} AND r.k BETWEEN ? AND ? ORDER BY r.k",
                    (*bindings, n << POSITION_BITS, n << POSITION_BITS | POSITION_MASK),
                )
            return [stored_record(session, row) for row in rows]
        if mark is not Mark.OPEN and kind in KINDS[:9]:
            raise InvalidInput(f"name the session whose {kind} records you want")
        rows = self._db.execute(
            RECORD.replace(" FROM", ", s.id FROM")
            + f"JOIN session s ON s.n = r.session WHERE {where} ORDER BY r.k",
            bindings,
        )
        return [stored_record(row[8], row) for row in rows]

    def holders(self, kind: Kind, id: str) -> list[str]:
        """The sessions that have a record of this kind and id: one look into the index for each session."""
        check_kind(kind)
        rows = self._db.execute(
            "SELECT s.id FROM session s CROSS JOIN record r ON r.session=s.n AND r.id=? AND r.kind=? "
            "WHERE s.data IS NOT NULL AND r.data IS NOT NULL ORDER BY s.n",
            (id, KIND_NUMBER[kind]),
        )
        return [str(session) for (session,) in rows]

    def number(self, session: str) -> int | None:
        """By what the rows of a session are found."""
        found = self._db.execute("SELECT n FROM session WHERE id=?", (session,)).get
        return None if found is None else int(found)


def stored_record(session: str, row: tuple[Any, ...]) -> StoredRecord:
    """A record from the columns of `RECORD`."""
    k, kind, mark, seq, place, id, data, parent = row[:8]
    position = k & POSITION_MASK
    return StoredRecord(
        session, KINDS[kind], id, parent, position, seq, place or position, Mark(mark), data or b""
    )


def _session_filter(query: SessionQuery) -> tuple[str, list[object]]:
    where, bindings = ["scope=0", "data IS NOT NULL", "updated IS NOT NULL"], list[object]()

    def add(clause: str, *values: object) -> None:
        where.append(clause)
        bindings.extend(values)

    if query.project is not None:
        add("project=?", query.project)
    if query.directory is not None:
        add("directory=?", query.directory)
    if query.path is not None and query.path.strip("/"):
        path = query.path.strip("/")
        add("(path=? OR path>=? AND path<?)", path, f"{path}/", f"{path}0")
    if query.roots:
        add("parent IS NULL")
    if query.parent is not None:
        add("parent=?", query.parent)
    if query.archived is not None:
        add("archived IS NOT NULL" if query.archived else "archived IS NULL")
    if query.agent_runs is not None:
        add("agent_run IS NOT NULL" if query.agent_runs else "agent_run IS NULL")
    if query.updated_from is not None:
        add("updated>=?", check_int(query.updated_from))
    if query.updated_to is not None:
        add("updated<=?", check_int(query.updated_to))
    if query.title is not None:
        add("title_has(title, ?)", query.title.casefold())
    if query.id_prefix is not None:
        add("id>=? AND id<?", query.id_prefix, query.id_prefix + "~")  # Ids have no letter after "~".
    if query.slug is not None:
        add("slug=?", query.slug)
    if query.cursor is not None:
        add("(updated, n) < (?, ?)", *parse_list(query.cursor))
    return "WHERE " + " AND ".join(where), bindings


def title_has(*values: Any) -> bool:
    """Whether a title contains folded text: a function of the connection, since SQLite folds only ASCII."""
    title, folded = values
    return folded in (title or "").casefold()

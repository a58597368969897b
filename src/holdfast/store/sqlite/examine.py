"""Verifies the file, the numbers, the parents, the JSON and the index; mends only when asked.

Numbers have gaps by nature, so continuity is no test. What must hold: each number once, a record's
position at most its `seq`, its `seq` at most its session's head, a part under a message of its session.
"""

import apsw

from holdfast.errors import HoldfastError
from holdfast.schema.stored import KINDS, Kind
from holdfast.store.judge import complaint
from holdfast.store.report import Finding, Report
from holdfast.store.sqlite.connection import Connection
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.tables import POSITION_BITS, POSITION_MASK


def examine(db: Connection, database: Database, *, repair: bool) -> Report:
    """Look at everything, in one transaction of the caller's."""
    return _Examination(db, database, repair=repair).run()


class _Examination:
    def __init__(self, db: Connection, database: Database, *, repair: bool) -> None:
        self._db = db
        self._database = database
        self._repair = repair
        self._findings: list[Finding] = []
        self._seen: set[int] = set()
        self._records = 0

    def run(self) -> Report:
        for (line,) in self._db.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                self._find(f"SQLite: {line}", str(self._database.path))
        sessions = self._db.execute(
            "SELECT n, id, scope, position, seq, head, CAST(data AS BLOB) FROM session ORDER BY n"
        ).fetchall()
        for n, id, scope, position, seq, head, data in sessions:
            self._session(n, id, position, seq, head)
            if scope == 0 and data is not None:
                self._json(None, id, "session", id, parent=None, data=data)
        self._orphans()
        self._search()
        living = sum(1 for row in sessions if row[2] == 0 and row[6] is not None)
        return Report(living, self._records, tuple(self._findings))

    def _find(self, what: str, where: str, *, mended: bool = False) -> None:
        self._findings.append(Finding(what, where, mended))

    def _number(self, number: int, where: str) -> None:
        if number in self._seen:
            self._find(f"number {number} was given twice", where)
        self._seen.add(number)

    def _session(self, n: int, id: str, position: int, seq: int, head: int) -> None:
        self._number(seq, f"session {id}")
        top = 0
        rows = self._db.execute(
            "SELECT r.k, r.kind, r.seq, r.id, r.parent, p.kind, p.session, p.id, CAST(r.data AS BLOB), "
            "p.data IS NULL FROM record r LEFT JOIN record p ON p.k=r.parent WHERE r.session=? ORDER BY r.k",
            (n,),
        )
        for (
            k,
            kind,
            number,
            record,
            parent,
            parent_kind,
            parent_session,
            message,
            data,
            parent_gone,
        ) in rows.fetchall():
            self._records += data is not None
            where = f"{KINDS[kind]} {record} of {id}"
            self._number(number, where)
            top = max(top, number)
            if k >> POSITION_BITS != n or k & POSITION_MASK > number:
                self._find("its numbers are out of order", where)
            if parent is not None and (
                parent_kind != KINDS.index("message")
                or parent_session != n
                or parent >= k
                or (data is not None and parent_gone)
            ):
                self._find(
                    "its message is missing",
                    where,
                    mended=self._quarantine(k, id, KINDS[kind], record, data=data),
                )
                continue
            if data is not None:
                self._json(k, id, KINDS[kind], record, parent=message, data=data)
        if head < max(top, seq) or position > seq:
            self._find(f"the head {head} is behind its records", f"session {id}", mended=self._repair)
            if self._repair:
                self._db.execute("UPDATE session SET head=? WHERE n=?", (max(top, seq), n))

    def _json(
        self, k: int | None, session: str, kind: Kind, id: str, *, parent: str | None, data: bytes
    ) -> None:
        wrong = complaint(kind, data, id=id, session=session, parent=parent)
        if wrong is not None:
            mended = k is not None and self._quarantine(k, session, kind, id, data=data)
            self._find(f"its JSON cannot be read: {wrong}", f"{kind} {id} of {session}", mended=mended)

    def _quarantine(self, k: int, session: str, kind: Kind, id: str, *, data: bytes | None) -> bool:
        """Set a record aside, with its content, and leave a tombstone; everything else works on."""
        if not self._repair:
            return False
        from holdfast.clock import SystemClock

        now_ms = SystemClock().now_ms()
        self._db.execute(
            "INSERT INTO quarantine VALUES (?,?,?,?,?,?)", (now_ms, "unreadable", session, kind, id, data)
        )
        seq = self._db.execute("SELECT max(head) + 1 FROM session").get
        self._db.execute("DELETE FROM record WHERE parent=?", (k,))
        self._db.execute(
            "UPDATE record SET data=NULL, parent=NULL, mark=0, seq=?, at=? WHERE k=?", (seq, now_ms, k)
        )
        self._db.execute("UPDATE session SET head=? WHERE n=?", (seq, k >> POSITION_BITS))
        return True

    def _orphans(self) -> None:
        for k, id in self._db.execute(
            "SELECT k, id FROM record WHERE session NOT IN (SELECT n FROM session)"
        ).fetchall():
            mended = self._quarantine(k, "", "cache", id, data=None)
            self._find("its session is missing", f"record {id}", mended=mended)

    def _search(self) -> None:
        """The index is derived: a bad one is thrown away and comes back with the next search."""
        path = self._database.search_path
        if not path.exists():
            return
        try:
            index = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                ok = index.execute("PRAGMA quick_check(1)").get == "ok"
                index.execute("INSERT INTO words(words) VALUES ('integrity-check')")
            finally:
                index.close()
        except (apsw.Error, HoldfastError):
            ok = False
        if not ok:
            if self._repair:
                for suffix in ("", "-wal", "-shm"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
            self._find("the search index is damaged", str(path), mended=self._repair)

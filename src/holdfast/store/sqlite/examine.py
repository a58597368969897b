"""Verifies the file, the numbers, the parents, the JSON and the index; mends only when asked.

Numbers have gaps by nature, so continuity is no test. What must hold: each number once, a record's position
at most its `seq`, its `seq` at most its session's head, a part under a message of its session. What cannot be
mended in place is set aside, with its content: nothing is ever thrown away.
"""

from typing import Any

import apsw
import msgspec

from holdfast.clock import Clock
from holdfast.errors import StoreDamaged
from holdfast.schema.ids import body
from holdfast.schema.stored import KINDS
from holdfast.store.columns import MESSAGE, PART, stub
from holdfast.store.examining import STEPS, Examining
from holdfast.store.report import Finding, Report, complaint
from holdfast.store.sqlite import index_entries
from holdfast.store.sqlite.backups import Backups
from holdfast.store.sqlite.database import UNREADABLE, Database, is_unreadable
from holdfast.store.sqlite.salvage.raw_file import Kept
from holdfast.store.sqlite.salvage.rescue import survey
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK
from holdfast.store.tables.leases import unreadable

PAGE = 500
_SESSIONS = f"""
SELECT n, id, scope, position, seq, head, top, CAST(data AS BLOB) FROM session WHERE n>? ORDER BY n
LIMIT {PAGE}
"""
# Along the keys, where a session's records lie together. What another session claims there is found as well.
_RECORDS = f"""
SELECT r.k, r.session, r.kind, r.seq, r.id, r.parent, p.kind, p.session, p.id, CAST(r.data AS BLOB),
  p.data IS NULL
FROM record r LEFT JOIN record p ON p.k=r.parent WHERE r.k>? AND r.k<=? ORDER BY r.k LIMIT {PAGE}
"""
_LOST = """
SELECT k, id, session IN (SELECT n FROM session) FROM record
WHERE session NOT IN (SELECT n FROM session) OR (k >> 40) NOT IN (SELECT n FROM session)
"""


def examine(
    db: Connection,
    database: Database,
    clock: Clock,
    *,
    repair: bool,
    examining: Examining | None = None,
    kept: Kept | None = None,
) -> Report:
    """Look at everything, in one transaction of the caller's."""
    examination = _Examination(db, database, clock, examining or Examining(), repair=repair)
    try:
        wrong = examination.file()
        if not wrong:
            return examination.run()
    except apsw.CorruptError as error:
        wrong = [str(error)]
    except apsw.IOError as error:
        if not is_unreadable(error):
            raise
        wrong = [UNREADABLE]
    # A page of the file itself is broken: no table can be trusted to mend it.
    if repair:
        raise StoreDamaged(str(database.path), "; ".join(wrong))
    return surveyed(database, clock, wrong, kept)


def surveyed(database: Database, clock: Clock, wrong: list[str], kept: Kept | None = None) -> Report:
    """What can be reported of a store whose file is damaged."""
    left = survey(database, clock, kept=kept)
    findings = [Finding(f"SQLite: {line}", str(database.path)) for line in wrong if line != left.log]
    findings += [Finding(gap, str(database.path)) for gap in left.gaps]
    if left.log:
        what = f"{left.log}: SQLite drops what stands behind it, --salvage NEW keeps it"
        findings.append(Finding(what, str(database.log_path)))
    backups = Backups(database)
    restores = [f"--restore {path.name} brings that backup back" for path in backups.listed()[:1]]
    ways = "--salvage NEW writes them into a new store, --repair puts it in the place of this one"
    sessions = len(left.whole) + len(left.incomplete)
    return Report(sessions, left.records, tuple(findings), (f"readable are {left.count}: {ways}", *restores))


class _Examination:
    def __init__(
        self, db: Connection, database: Database, clock: Clock, examining: Examining, *, repair: bool
    ) -> None:
        self._db = db
        self._examining = examining
        self._database = database
        self._clock = clock
        self._repair = repair
        self._findings: list[Finding] = []
        self._seen: set[int] = set()
        self._records = 0

    def file(self) -> list[str]:
        """What SQLite reports about the file, and what it does not look for."""
        self._examining.at("the file")
        lines = [line for (line,) in self._db.execute("PRAGMA integrity_check(20)")]
        wrong = [" ".join(line.split()) for line in lines if line != "ok"]
        return wrong or index_entries.without_rows(self._db, self._examining)

    def run(self) -> Report:
        living, done, last = 0, 0, -1
        total = self._db.execute("SELECT count(*) FROM session").get
        while rows := self._db.execute(_SESSIONS, (last,)).fetchall():
            for row in rows:
                self._examining.at("sessions", done, total)
                living += self._session(row)
                done += 1
            last = rows[-1][0]
        self._examining.at("records without a session")
        self._lost()
        self._search()
        for owner in unreadable(self._db):
            self.find("its row cannot be read", f"owner {owner}")
        return self.report(living)

    def report(self, sessions: int) -> Report:
        """What was found."""
        trouble = Backups(self._database).trouble()
        advice = () if trouble is None else (f"the last automatic backup was not made: {trouble}",)
        return Report(sessions, self._records, tuple(self._findings), advice)

    def find(self, what: str, where: object, *, mended: bool = False, given_up: bool = False) -> None:
        """Note something wrong."""
        self._findings.append(Finding(what, str(where), mended, given_up))

    def _number(self, number: int, kind: str, id: str, session: str = "") -> None:
        if number in self._seen:
            where = f"{kind} {id} of {session}" if session else f"{kind} {id}"
            self.find(f"number {number} was given twice", where)
        self._seen.add(number)

    def _session(self, row: tuple[Any, ...]) -> bool:
        """One session with its records; whether it lives."""
        n, id, scope, position, seq, head, top_id, data = row
        self._number(seq, "session", id)
        top, greatest = self._contents(n, id, seq)
        if scope == 0 and data is not None:
            wrong = complaint("session", data, id=id, session=id, parent=None)
            if wrong is not None:
                self.find(
                    f"its JSON cannot be read: {wrong}", f"session {id}", mended=self._mend_session(n, id)
                )
        if head < top or position > seq:
            self.find(f"the head {head} is behind its records", f"session {id}", mended=self._repair)
            if self._repair:
                self._db.execute("UPDATE session SET head=max(head, ?) WHERE n=?", (top, n))
        # Ids are taken for new when they are above the session's top, so it must be above all it has.
        if top_id < greatest:
            self.find("its greatest id is not noted", f"session {id}", mended=self._repair)
            if self._repair:
                self._db.execute("UPDATE session SET top=? WHERE n=?", (greatest, n))
        return scope == 0 and data is not None

    def _contents(self, n: int, session: str, seq: int) -> tuple[int, str]:
        """The records of a session, a few hundred at a time: the greatest number and the greatest id body."""
        top, greatest = seq, ""
        last, end = n << POSITION_BITS, n << POSITION_BITS | POSITION_MASK
        while rows := self._db.execute(_RECORDS, (last, end)).fetchall():
            for row in rows:
                self._record(n, session, row)
                top = max(top, row[3])
                if row[2] <= PART:
                    greatest = max(greatest, body(row[4]))
            last = rows[-1][0]
            if len(rows) < PAGE:
                break
            self._examining.at("records", self._records)
        return top, greatest

    def _record(self, n: int, session: str, row: tuple[Any, ...]) -> None:
        k, claimed, kind, seq, id, parent, parent_kind, parent_session, message, data, parent_gone = row
        self._records += data is not None
        self._number(seq, KINDS[kind], id, session)
        where = f"{KINDS[kind]} {id} of {session}"
        if claimed != n or k & POSITION_MASK > seq:
            self.find("its numbers are out of order", where)
        is_below = parent_kind == MESSAGE and parent_session == n and parent is not None and parent < k
        if parent is not None and not (is_below and (data is None or not parent_gone)):
            aside = self._set_aside(k, "its message is missing")
            self.find("its message is missing", where, mended=aside, given_up=aside)
        elif data is not None:
            wrong = complaint(KINDS[kind], data, id=id, session=session, parent=message)
            if wrong is not None:
                aside = self._set_aside(k, wrong)
                self.find(f"its JSON cannot be read: {wrong}", where, mended=aside, given_up=aside)

    def _set_aside(self, k: int, why: str) -> bool:
        """Move a record, and the parts below it, into quarantine, and leave a tombstone."""
        if not self._repair:
            return False
        now_ms = self._clock.now_ms()
        kept = (
            "INSERT INTO quarantine SELECT ?, ?, s.id, r.kind, r.id, r.data FROM record r "
            "LEFT JOIN session s ON s.n=r.session WHERE r.k=? OR r.parent=?"
        )
        self._db.execute(kept, (now_ms, why, k, k))
        seq = self._next()
        self._db.execute("DELETE FROM record WHERE parent=?", (k,))
        self._db.execute(
            "UPDATE record SET data=NULL, parent=NULL, mark=0, seq=?, at=? WHERE k=?", (seq, now_ms, k)
        )
        self._db.execute("UPDATE session SET head=? WHERE n=?", (seq, k >> POSITION_BITS))
        return True

    def _mend_session(self, n: int, id: str) -> bool:
        """Give a session that cannot be read what its columns still know; its messages stay."""
        if not self._repair:
            return False
        project, directory, title, parent, updated, data = self._db.execute(
            "SELECT project, directory, title, parent, updated, data FROM session WHERE n=?", (n,)
        ).get
        now_ms = self._clock.now_ms()
        info = msgspec.json.decode(stub(project, directory, updated or now_ms))
        info["title"] = title or "Recovered session"
        if parent is not None:
            info["parentID"] = parent
        seq = self._next()
        self._db.execute(
            "INSERT INTO quarantine VALUES (?,?,?,?,?,?)", (now_ms, "unreadable", id, 0, id, data)
        )
        self._db.execute(
            "UPDATE session SET data=?, seq=?, head=? WHERE n=?",
            (msgspec.json.encode(info).decode(), seq, seq, n),
        )
        return True

    def _next(self) -> int:
        seq = int(self._db.execute("SELECT max(head) + 1 FROM session").get)
        self._seen.add(seq)
        return seq

    def _lost(self) -> None:
        """Records of a session that has no row at all: set aside whole, since no follower can reach them."""
        now_ms = self._clock.now_ms()
        for k, id, has_session in self._db.execute(_LOST).fetchall():
            if has_session:
                self.find("its numbers are out of order", f"record {id}")
                continue
            if self._repair:
                self._db.execute(
                    "INSERT INTO quarantine SELECT ?, 'its session is missing', NULL, kind, id, data "
                    "FROM record WHERE k=?",
                    (now_ms, k),
                )
                self._db.execute("DELETE FROM record WHERE k=?", (k,))
            self.find("its session is missing", f"record {id}", mended=self._repair, given_up=self._repair)

    def _search(self) -> None:
        """The index is derived: a bad one is thrown away and comes back with the next search."""
        path = self._database.search_path
        if not path.exists() or self._database.readonly:
            return
        try:
            index = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                self._examining.at("the search index")
                index.set_progress_handler(self._examining.is_ended, STEPS)
                ok = index.execute("PRAGMA quick_check(1)").get == "ok"
                index.execute("INSERT INTO words(words) VALUES ('integrity-check')")
                stale = self._stale(index)
            finally:
                index.close()
        except apsw.InterruptError:  # The examination was ended.
            raise
        except apsw.Error:
            ok, stale = False, 0
        if not ok or stale:
            if self._repair:
                for suffix in ("", "-wal", "-shm"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
            what = f"the search index holds {stale} removed texts" if ok else "the search index is damaged"
            self.find(what, path, mended=self._repair)

    def _stale(self, index: Connection) -> int:
        """How many texts of the index belong to records that are gone."""
        stale = 0
        total = index.execute("SELECT count(*) FROM doc").get
        for done, (k,) in enumerate(index.execute("SELECT k FROM doc ORDER BY k")):
            if not done % PAGE:
                self._examining.at("the search index", done, total)
            if k & POSITION_MASK:
                found = self._db.execute("SELECT 1 FROM record WHERE k=? AND data IS NOT NULL", (k,)).get
            else:
                found = self._db.execute(
                    "SELECT 1 FROM session WHERE n=? AND data IS NOT NULL", (k >> POSITION_BITS,)
                ).get
            stale += found is None
        return stale

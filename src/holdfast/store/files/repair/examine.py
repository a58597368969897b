"""Compares tree and index both ways, and every file with what its kind says; mends only when asked.

Numbers have gaps by nature, so continuity is no test. What must hold: each number once, a record's position
at most its `seq`, its `seq` at most its session's head, a part under a living message of its session, and
the same numbers in the file as in the index.
"""

from typing import Literal

import apsw
import msgspec

from holdfast.schema.stored import KINDS
from holdfast.store.examining import Examining
from holdfast.store.files import file_format, layout
from holdfast.store.files.disk import Disk
from holdfast.store.files.repair.rebuild import tree_paths
from holdfast.store.files.trace import ASIDE
from holdfast.store.report import Finding, Report, complaint
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK
from holdfast.store.tables.leases import unreadable

ORPHANED = "its message is missing"

Cure = Literal["set aside", "rebuild", "none"]


class Fault(msgspec.Struct, frozen=True):
    """Something wrong: with which record or file, and what would mend it."""

    what: str
    where: str
    cure: Cure
    place: layout.TreePlace | None = None
    path: str = ""
    seq: int = 0
    """The number of the record that was found faulty."""

    def finding(self, *, mended: bool = False) -> Finding:
        """The fault as a report shows it."""
        is_record = self.cure == "set aside" and self.place is not None and self.place.kind != "session"
        return Finding(self.what, self.where, mended, given_up=mended and is_record)


class Examination:
    """One look at everything, with the store held still."""

    def __init__(self, db: Connection, disk: Disk, examining: Examining) -> None:
        self._db = db
        self._examining = examining
        self._disk = disk
        self._numbers: set[int] = set()
        self._expected: set[str] = set()
        self.faults: list[Fault] = []
        self.sessions = 0
        self.records = 0

    def run(self) -> "Examination":
        """Look; the answers are in the attributes."""
        try:
            self._look()
        except (apsw.CorruptError, apsw.NotADBError) as error:
            self._fault(f"the index is damaged: {error}", "index.db", "rebuild")
        return self

    def _look(self) -> None:
        self._examining.at("the index")
        for (line,) in self._db.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                self._fault(f"the index: {line}", "index.db", "rebuild")
        for owner in unreadable(self._db):
            self._fault("its row cannot be read", f"owner {owner}", "none")
        rows = self._db.execute(
            "SELECT n, id, scope, position, seq, head, project, data IS NOT NULL FROM session ORDER BY n"
        ).fetchall()
        for done, (n, id, scope, position, seq, head, project, live) in enumerate(rows):
            self._examining.at("sessions", done, len(rows))
            self._number(seq, f"session {id}")
            top = self._records(n, id)
            if head < max(top, seq) or position > seq:
                self._fault(f"the head {head} is behind its records", f"session {id}", "rebuild")
            if not live:
                self._grave(layout.tombstone_path(id, "session", id), position, seq)
            elif scope:
                self._numbered(f"{layout.SCOPE}/{id}.json", position, seq)
            else:
                self.sessions += 1
                place = layout.TreePlace("session", id, id, project=project)
                self._file(layout.session_path(project, id), place, position, seq)
        self._strays()

    def report(self) -> Report:
        """What was found, nothing mended."""
        return Report(self.sessions, self.records, tuple(fault.finding() for fault in self.faults))

    def _fault(
        self,
        what: str,
        where: str,
        cure: Cure,
        place: layout.TreePlace | None = None,
        path: str = "",
        *,
        seq: int = 0,
    ) -> None:
        self.faults.append(Fault(what, where, cure, place, path, seq))

    def _number(self, number: int, where: str) -> None:
        if number in self._numbers:
            self._fault(f"number {number} was given twice", where, "none")
        self._numbers.add(number)

    def _records(self, n: int, session: str) -> int:
        top = 0
        rows = self._db.execute(
            "SELECT r.k, r.kind, r.seq, r.id, r.parent, r.data, p.id, p.kind, p.session, p.data IS NOT NULL "
            "FROM record r LEFT JOIN record p ON p.k=r.parent WHERE r.session=? ORDER BY r.k",
            (n,),
        ).fetchall()
        for k, number, seq, id, parent, data, message, parent_kind, parent_session, parent_live in rows:
            self._examining.at("records", self.records)
            kind, position = KINDS[number], k & POSITION_MASK
            where = f"{kind} {id} of {session}"
            self._number(seq, where)
            top = max(top, seq)
            if k >> POSITION_BITS != n or position > seq:
                self._fault("its numbers are out of order", where, "rebuild")
            if data is None:
                self._grave(layout.tombstone_path(session, kind, id), position, seq)
                continue
            self.records += 1
            aside = data == ASIDE
            path = layout.record_path(kind, session, id, message, aside=aside)
            place = layout.TreePlace(kind, session, id, message, aside=aside)
            is_child = (parent_kind, parent_session, parent_live) == (1, n, 1) and parent < k
            if kind == "part" and not is_child:
                self._fault(ORPHANED, where, "set aside", place, path, seq=seq)
                continue
            self._file(path, place, position, seq)
        return top

    def _file(self, path: str, place: layout.TreePlace, position: int, seq: int) -> None:
        """A record's file: it is there, it says what its kind says, and it has the numbers of the index."""
        self._expected.add(path)
        where = f"{path} ({place.kind} {place.id} of {place.session})"
        raw, wrong = judged(self._disk, path, place)
        if wrong is not None:
            self._fault(wrong, where, "set aside", place, path, seq=seq)
            if self._disk.exists(layout.sidecar(path)):
                self._expected.add(layout.sidecar(path))
        elif raw[:1] == b"[":
            self._numbered(layout.sidecar(path), position, seq)
        elif file_format.wrong_names(
            place.kind, raw, id=place.id, session=place.session, parent=place.parent
        ):
            self._fault("its content bears another name than the file", where, "rebuild")
        else:
            self._numbered(path, position, seq)

    def _grave(self, path: str, position: int, seq: int) -> None:
        self._numbered(path, position, seq)

    def _numbered(self, path: str, position: int, seq: int) -> None:
        """A file that carries numbers has those of the index."""
        self._expected.add(path)
        try:
            raw = self._disk.read(path)
            if path.endswith(layout.SIDECAR):
                found = file_format.sidecar_numbers(raw)
            else:
                numbers, _ = file_format.numbers_of(raw)
                if numbers is None:
                    self._fault("its numbers are missing", path, "rebuild")
                    return
                found = numbers
        except (OSError, *file_format.Damaged) as error:
            self._fault(f"its numbers cannot be read: {error}", path, "rebuild")
            return
        if (found.position, found.seq) != (position, seq):
            self._fault("its numbers are not those of the index", path, "rebuild")

    def _strays(self) -> None:
        for path in tree_paths(self._disk):
            self._examining.at("files")
            if path in self._expected or path.startswith(f"{layout.OWNER}/"):
                continue
            if path.endswith(".draft"):
                self._fault(
                    "it was left behind by a rewrite that was interrupted", path, "rebuild", path=path
                )
            else:
                self._fault("the index does not know it", path, "rebuild", path=path)


def judged(disk: Disk, path: str, place: layout.TreePlace) -> tuple[bytes, str | None]:
    """What is in a record's file, and why it cannot be used; None when it can."""
    try:
        raw = disk.read(path)
    except OSError as error:
        return b"", "its file is missing" if isinstance(error, FileNotFoundError) else str(error)
    try:
        data = file_format.data_of(place.kind, raw, id=place.id, session=place.session, parent=place.parent)
        wrong = complaint(place.kind, data, id=place.id, session=place.session, parent=place.parent)
    except file_format.Damaged as error:
        wrong = str(error)
    return raw, None if wrong is None else f"it cannot be read: {wrong}"

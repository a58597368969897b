"""From what a transaction did to the index to what must happen to the tree.

A plan says for each file how it shall be when the commit is through. It is computed from the state at the end
of the transaction, so that a record put, removed and put again within one group is written once.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.schema.stored import HEADS, Kind
from holdfast.store.columns import KIND_NUMBER
from holdfast.store.files import file_format, layout
from holdfast.store.files.disk import Disk
from holdfast.store.files.trace import ASIDE, HORIZON_RISEN, Dropped, Traces
from holdfast.store.record import StoredRecord
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_MASK

Written = tuple[StoredRecord, bytes]
"""A record that was put, and its content as the file shows it."""

_SESSION = (
    "SELECT n, id, scope, position, seq, head, top, owner, fence, project, directory, at, data IS NOT NULL "
    "FROM session "
)
_RECORD = (
    "SELECT r.k, r.seq, r.at, r.data, p.id FROM record r JOIN session s ON s.n = r.session "
    "LEFT JOIN record p ON p.k = r.parent WHERE s.id=? AND r.id=? AND r.kind=?"
)


class Plan:
    """The files of one group of commits."""

    def __init__(self, db: Connection, disk: Disk, revived: Mapping[int, int]) -> None:
        self._db = db
        self._revived = revived
        self._disk = disk
        self.files: dict[str, bytes] = {}
        self.gone: dict[str, str] = {}
        self._bodies: dict[str, bytes] = {}
        self._fresh: set[str] = set()

    def make(self, written: list[Written], traces: Traces | None) -> None:
        """Work out every file."""
        dropped = [] if traces is None else traces.dropped
        born = {record.position for record, _ in written if record.position == record.seq} if dropped else ()
        on_disk = [each for each in dropped if each.live and each.position not in born]
        for each in on_disk:
            self._forget(each.kind, self._path(each), each.session)
        for record, body in written:
            if not body or (dropped and not self._is_latest(record)):
                continue
            if record.kind == "session":
                self._bodies[record.id] = body
            else:
                self._put(record, body)
        for each in dropped:
            self._bury(each)
        for id in self._bodies:
            self._session(_SESSION + "WHERE id=?", id)
        if traces is not None:
            self._trace(traces)

    def _path(self, each: Dropped) -> str:
        return layout.record_path(each.kind, each.session, each.id, each.parent, aside=each.aside)

    def _is_latest(self, record: StoredRecord) -> bool:
        """Whether the record still is what this put made of it."""
        if record.kind == "session":
            return True
        row = self._row(record.session, record.kind, record.id)
        return row is not None and row[3] is not None and bool(row[1] == record.seq)

    def _row(self, session: str, kind: Kind, id: str) -> Any:
        """The key, number, time of removal, data and message id of a record, as the index has them now."""
        return self._db.execute(_RECORD, (session, id, KIND_NUMBER[kind])).get

    def _put(self, record: StoredRecord, body: bytes) -> None:
        kind = record.kind
        aside = kind == "part" and self._aside(record)
        path = layout.record_path(kind, record.session, record.id, record.parent, aside=aside)
        if HEADS[kind]:
            at = self._revived.get(record.position)
            content = file_format.record_sealed(
                body, record.position, record.seq, record.place, record.mark, at=at
            )
        else:
            content = self._headless(record, path, body)
        self.files[path] = content
        if self.gone:
            self.gone.pop(path, None)

    def _headless(self, record: StoredRecord, path: str, body: bytes) -> bytes:
        """A file whose content does not name its record: an object with our key, an array with a sidecar."""
        place = None if record.place == record.position else record.place
        at = self._revived.get(record.position)
        numbers = file_format.Numbers(record.position, record.seq, place, int(record.mark), at)
        beside = layout.sidecar(path)
        if body.startswith(b"["):
            self.files[beside] = msgspec.json.format(msgspec.json.encode(numbers), indent=2)
            self.gone.pop(beside, None)
            return body
        if self._disk.exists(beside):
            self.gone[beside] = record.session
        return file_format.sealed(body, numbers)

    def _aside(self, record: StoredRecord) -> bool:
        """Whether the record lies aside, because another one has its natural place."""
        if record.position == record.seq:
            taken = self._is_taken(record)
            if taken:
                self._db.execute(
                    "UPDATE record SET data=? WHERE session=(SELECT n FROM session WHERE id=?) AND id=? "
                    "AND kind=?",
                    (ASIDE, record.session, record.id, KIND_NUMBER[record.kind]),
                )
            return taken
        row = self._row(record.session, record.kind, record.id)
        return row is not None and bool(row[3] == ASIDE)

    def _is_taken(self, record: StoredRecord) -> bool:
        path = layout.record_path(record.kind, record.session, record.id, record.parent)
        if path in self.files:
            return True
        if record.parent is not None:  # A message without parts needs one look for all of them.
            if record.parent not in self._fresh and not self._disk.exists(f"part/{record.parent}"):
                self._fresh.add(record.parent)
            if record.parent in self._fresh:
                return False
        return path not in self.gone and self._disk.exists(path)

    def _forget(self, kind: Kind, path: str, session: str) -> None:
        self.gone[path] = session
        if kind in layout.ARRAYS:
            self.gone[layout.sidecar(path)] = session

    def _bury(self, each: Dropped) -> None:
        """Write or take away the tombstone, as the index has it now."""
        row = self._row(each.session, each.kind, each.id)
        path = layout.tombstone_path(each.session, each.kind, each.id)
        if row is None or row[3] is not None:
            self.gone[path] = each.session
            return
        k, seq, at, _, parent = row
        grave = file_format.Grave(k & POSITION_MASK, seq, at, parent)
        body = msgspec.json.encode({"session": each.session, "kind": each.kind, "id": each.id})
        self.files[path] = file_format.sealed(msgspec.json.format(body, indent=2), grave)
        self.gone.pop(path, None)

    def _session(self, query: str, key: object) -> None:
        """Write the file of a session or a scope, or its tombstone, as its row has it now."""
        row = self._db.execute(query, (key,)).get
        if row is None:
            return
        n, id, scope, position, seq, head, top, owner, fence, project, directory, at, live = row
        claim = file_format.Claim(owner, fence) if fence else None
        numbers = file_format.SessionNumbers(position, seq, n, head, top, claim, at)
        named = msgspec.json.format(msgspec.json.encode({"id": id}), indent=2)
        if not live:
            # Where it was, so that followers of a directory learn of the removal; nothing of its content.
            was = msgspec.json.encode({"id": id, "projectID": project, "directory": directory})
            stone = file_format.sealed(msgspec.json.format(was, indent=2), numbers)
            self.files[layout.tombstone_path(id, "session", id)] = stone
            self.gone.pop(layout.tombstone_path(id, "session", id), None)
        elif scope:
            self.files[f"{layout.SCOPE}/{id}.json"] = file_format.sealed(named, numbers)
        else:
            path = layout.session_path(project, id)
            body = self._bodies.get(id) or self._stored(path)
            if body is not None:
                self.files[path] = file_format.sealed(body, numbers)
                self.gone.pop(path, None)

    def _stored(self, path: str) -> bytes | None:
        """The content that a session's file has now; None leaves a damaged file to `examine`."""
        try:
            body = file_format.wire(self._disk.read(path))
        except (OSError, *file_format.Damaged):
            return None
        return body if body.startswith(b"{\n") else msgspec.json.format(body, indent=2)

    def _trace(self, traces: Traces) -> None:
        for id in traces.exhumed:
            self.gone[layout.tombstone_path(id, "session", id)] = id
        for id, project in traces.moved:
            path = layout.session_path(project, id)
            if path not in self.files:
                self.gone[path] = id
        for n in traces.touched:
            self._session(_SESSION + "WHERE n=?", n)
        for id in traces.leased:
            path = f"{layout.OWNER}/{id}.json"
            row = self._db.execute("SELECT data, dead FROM owner WHERE id=?", (id,)).get
            if row is None:
                self.gone[path] = ""
            else:
                owner = msgspec.json.decode(row[0])
                self.files[path] = msgspec.json.format(
                    msgspec.json.encode(owner | {"dead": bool(row[1])}), indent=2
                )
        if HORIZON_RISEN in traces.touched:
            horizon = self._db.execute("SELECT value FROM store WHERE key='horizon'").get
            self.files[layout.HORIZON] = msgspec.json.encode({"horizon": int(horizon)})

    def carry_out(self) -> None:
        """Bring the tree to what the plan says."""
        for path, content in self.files.items():
            self._disk.write(path, content)
        folders = set()
        for path in self.gone:
            self._disk.unlink(path)
            folders.add(path.rpartition("/")[0])
        for folder in sorted(folders, reverse=True):
            if "/" in folder:
                self._disk.drop_folder(folder)


def body_of(record: StoredRecord) -> bytes:
    """A record's content as its file shows it; empty for a removal. `InvalidInput` when it cannot be."""
    if not record.data:
        return b""
    if record.kind == "session":
        from holdfast.store.columns import columns_of

        layout.component(columns_of(record.id, record.data).project, "project")
    return file_format.body(
        record.kind, record.data, id=record.id, session=record.session, parent=record.parent
    )

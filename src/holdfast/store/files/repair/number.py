"""Gives numbers to files that have none: a tree that OpenCode made, or a file that a user put into ours.

Sessions by (created, id), parents before their children; in each its messages by (created, id), each with its
parts by id. Ids come from paths, never from content. What cannot be read gets a row without content, so
that reading it names the file, and `examine` can set it aside.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import stored, typed
from holdfast.store.columns import KIND_NUMBER, MESSAGE, columns_of
from holdfast.store.files import file_format, layout
from holdfast.store.files.disk import Disk
from holdfast.store.files.layout import TreePlace
from holdfast.store.parents_first import parents_first
from holdfast.store.tables.connection import Connection


class _Time(msgspec.Struct):
    created: float = 0


class _Info(msgspec.Struct):
    time: _Time = msgspec.field(default_factory=_Time)
    parentID: str | None = None  # noqa: N815 - the wire's name


_info = typed.decoder(_Info)


class _File(msgspec.Struct):
    path: str
    place: TreePlace
    raw: bytes | None
    """None when it cannot be read."""
    created: float = 0
    above: str | None = None


class Numbering:
    """Numbers files within a transaction of the caller's."""

    def __init__(self, db: Connection, disk: Disk) -> None:
        self._db = db
        self._disk = disk
        row = db.execute(
            "SELECT max(head), max(n), (SELECT value FROM store WHERE key='horizon') FROM session"
        ).get
        self._seq = max(row[0] or 0, int(row[2] or 0))
        self._n = row[1] or 0
        self.files: dict[str, bytes] = {}
        """What is to be written: each file with its numbers."""
        self.damaged: list[_File] = []
        self.orphans: list[str] = []
        self._lost: list[tuple[TreePlace, int]] = []

    def number(self, paths: Iterable[str]) -> None:
        """Number the files at these paths."""
        sessions: dict[str, _File] = {}
        inside: defaultdict[str, list[_File]] = defaultdict(list)
        parts: list[_File] = []
        for path in paths:
            file = self._load(path)
            if file is None:
                continue
            if file.place.kind == "session":
                sessions[file.place.id] = file
            elif file.place.kind == "part":
                parts.append(file)
            else:
                inside[file.place.session].append(file)
        self._place_parts(parts, inside)
        files = sorted(sessions.values(), key=lambda each: (each.created, each.place.id))
        order = parents_first([each.place.id for each in files], [each.above for each in files])
        for file in (files[place] for place in order):
            self._session(file)
            self._inside(inside.pop(file.place.id, []))
        for session, files in sorted(inside.items()):
            if (
                self._db.execute("SELECT 1 FROM session WHERE id=? AND data IS NOT NULL", (session,)).get
                is None
            ):
                if not session.startswith(("project_", "host_")):
                    self.orphans += [file.path for file in files]
                    continue
                self._scope(session)
            self._inside(files)

    def _load(self, path: str) -> _File | None:
        name = path.removesuffix(layout.SIDECAR) + ".json" if path.endswith(layout.SIDECAR) else path
        place = layout.place_of(name)
        if place is None:
            return None
        try:
            raw = self._disk.read(name)
            if place.kind in layout.ARRAYS and raw[:1] == b"[":
                file_format.data_of(place.kind, raw, id="", session="", parent=None)
                return _File(name, place, raw)
            file_format.wire(raw)
            info = _info.decode(raw) if place.kind in ("session", "message") else _Info()
            if place.kind == "session":
                columns_of(place.id, raw)
        except (OSError, InvalidInput, *file_format.Damaged):
            return _File(name, place, None)
        return _File(name, place, raw, info.time.created, info.parentID)

    def _place_parts(self, parts: Sequence[_File], inside: defaultdict[str, list[_File]]) -> None:
        """Find the session of each part through its message."""
        if not parts:
            return
        rows = self._db.execute(
            "SELECT r.id, s.id FROM record r JOIN session s ON s.n = r.session "
            "WHERE r.kind=? AND r.data IS NOT NULL",
            (MESSAGE,),
        )
        homes: defaultdict[str, list[str]] = defaultdict(list)
        for message, session in rows.fetchall():
            homes[message].append(session)
        for session, files in inside.items():
            for file in files:
                if file.place.kind == "message":
                    homes[file.place.id].append(session)
        for file in parts:
            # Two sessions may have messages of one id: then the part itself tells.
            at_home = homes.get(file.place.parent or "", [""])
            named = "" if file.raw is None else file_format.numbers_of(file.raw)[1]
            session = file.place.session or (named if named in at_home else at_home[-1])
            if session:
                file.place = msgspec.structs.replace(file.place, session=session)
                inside[session].append(file)
            else:
                self.orphans.append(file.path)

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _session(self, file: _File) -> None:
        seq, place = self._next(), file.place
        n = self._db.execute("SELECT n FROM session WHERE id=?", (place.id,)).get
        if n is None:
            self._n = n = self._n + 1
        if file.raw is None:
            self.damaged.append(file)
            self._db.execute(
                "INSERT INTO session(n, id, position, seq, head, project, data) "
                "VALUES (?1,?2,?3,?3,?3,?4,'') ON CONFLICT(n) DO UPDATE SET position=?3, seq=?3, head=?3",
                (n, place.id, seq, place.project),
            )
            return
        data = file_format.data_of("session", file.raw, id=place.id, session=place.id, parent=None)
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        fields["projectID"] = msgspec.Raw(msgspec.json.encode(place.project))
        body = file_format.body(
            "session", msgspec.json.encode(fields), id=place.id, session=place.id, parent=None
        )
        self.files[file.path] = file_format.sealed(body, file_format.SessionNumbers(seq, seq, n, seq))

    def _scope(self, id: str) -> None:
        seq = self._next()
        self._n += 1
        named = msgspec.json.format(msgspec.json.encode({"id": id}), indent=2)
        self.files[f"{layout.SCOPE}/{id}.json"] = file_format.sealed(
            named, file_format.SessionNumbers(seq, seq, self._n, seq)
        )

    def _inside(self, files: Sequence[_File]) -> None:
        parts: defaultdict[str, list[_File]] = defaultdict(list)
        for file in files:
            if file.place.kind == "part":
                parts[file.place.parent or ""].append(file)
        own = [file for file in files if file.place.kind != "part"]
        for file in sorted(own, key=lambda each: (each.created, each.place.id, each.path)):
            self._record(file)
            if file.place.kind == "message":
                for part in sorted(parts.pop(file.place.id, []), key=lambda each: each.place.id):
                    self._record(part)
        for rest in parts.values():
            for part in sorted(rest, key=lambda each: each.place.id):
                self._record(part)

    def _record(self, file: _File) -> None:
        place, seq = file.place, self._next()
        if file.raw is None:
            self.damaged.append(file)
            self._lost.append((place, seq))
            return
        id = place.id
        data = file_format.data_of(place.kind, file.raw, id=id, session=place.session, parent=place.parent)
        numbers = file_format.Numbers(seq, seq, mark=_mark(place, data))
        if data[:1] == b"[":
            beside = msgspec.json.format(msgspec.json.encode(numbers), indent=2)
            self.files[layout.sidecar(file.path)] = beside
            return
        body = file_format.body(place.kind, data, id=id, session=place.session, parent=place.parent)
        self.files[file.path] = file_format.sealed(body, numbers)

    def enter_damaged(self) -> None:
        """Give a row to each record whose file cannot be read, once the sessions have theirs."""
        for place, seq in self._lost:
            n = self._db.execute("SELECT n FROM session WHERE id=?", (place.session,)).get
            if n is None:
                continue
            self._db.execute(
                "INSERT OR IGNORE INTO record(k, session, kind, mark, seq, id, data, parent) "
                "SELECT ?1 << 40 | ?2, ?1, ?3, 0, ?2, ?4, '', "
                "(SELECT k FROM record WHERE session=?1 AND id=?5 AND kind=1)",
                (n, seq, KIND_NUMBER[place.kind], place.id, place.parent),
            )
            self._db.execute("UPDATE session SET head=max(head, ?) WHERE n=?", (seq, n))


def _mark(place: TreePlace, data: bytes) -> int:
    try:
        value = stored.load(place.kind, data, id=place.id, session=place.session, parent=place.parent)
    except Exception:  # noqa: BLE001 - whatever its kind makes of it, the file keeps its place
        return 0
    return int(stored.mark(value))

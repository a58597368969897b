"""From files to rows: what a file of the tree says is entered into the index.

The same for one journal entry after a crash and for a whole tree when the index is rebuilt. The caller has
a transaction open. A file that says nothing usable is returned by name.

The journal is always right: what stands in its way gives way. A tree may hold copies that the user made, and
a copy has the numbers of its original: there a number belongs to the file whose content bears the file's own
name, else to the first that claims it, and the others are handed back to be numbered.
"""

from collections.abc import Iterable

import msgspec

from holdfast.clock import Clock
from holdfast.errors import InvalidInput
from holdfast.schema import ids, typed
from holdfast.schema.stored import Kind
from holdfast.store.batch import scope_of
from holdfast.store.columns import KIND_NUMBER, MESSAGE, PART, SCOPE_NUMBER, columns_of
from holdfast.store.files import file_format, layout
from holdfast.store.files.layout import TreePlace
from holdfast.store.files.trace import ASIDE
from holdfast.store.owner import LEASE_MS
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_BITS
from holdfast.store.tables.session_row import session_values

_ORDER = {"session": 0, layout.SCOPE: 0, "message": 2, "part": 3, layout.TOMBSTONE: 4}
"""Sessions before their records, messages before their parts."""


class _Was(msgspec.Struct):
    """Where an erased session was."""

    projectID: str | None = None  # noqa: N815 - the wire's name
    directory: str | None = None


def order(path: str) -> int:
    """When a file's turn comes."""
    folder = path.partition("/")[0]
    if folder == layout.TOMBSTONE and path.count("/") == 1:
        return 1
    return _ORDER.get(folder, 3)


class Absorber:
    """Enters files into the index through one connection."""

    def __init__(self, db: Connection, clock: Clock, *, fresh: bool = False) -> None:
        self._db = db
        self._clock = clock
        self._fresh = fresh
        self._sessions: dict[str, int] = {}
        self.unusable: list[str] = []
        self.renamed: dict[str, bytes] = {}
        """Files under another name than their content had, as they shall be."""

    def take(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Enter files; the caller has them in `order`."""
        later: list[tuple[str, bytes]] = []
        turn = 0
        for path, raw in files:
            if order(path) != turn:
                turn = order(path)
                self._take_renamed(later)
            self._enter_or_postpone(path, raw, later)
        self._take_renamed(later)

    def _enter_or_postpone(self, path: str, raw: bytes, later: list[tuple[str, bytes]]) -> None:
        try:
            wrong = self._wrong_names(path, raw)
            if not wrong:
                self._take(path, raw)
            elif wrong == {"id"}:
                later.append((path, raw))
            else:  # Its numbers are those of a place among other records.
                self.unusable.append(path)
        except (InvalidInput, *file_format.Damaged):
            self.unusable.append(path)

    def _wrong_names(self, path: str, raw: bytes) -> set[str]:
        place = layout.place_of(path) if self._fresh else None
        if place is None:
            return set()
        session = place.session or file_format.numbers_of(raw)[1]
        return file_format.wrong_names(place.kind, raw, id=place.id, session=session, parent=place.parent)

    def _take_renamed(self, later: list[tuple[str, bytes]]) -> None:
        """Files whose content bears another name: a copy, or a file that was renamed."""
        for path, raw in later:
            place = layout.place_of(path)
            assert place is not None, "only a record's file has names"
            handed_back = len(self.unusable)
            try:
                self._take(path, raw)
                if len(self.unusable) == handed_back:
                    session = place.session or file_format.numbers_of(raw)[1]
                    self.renamed[path] = file_format.renamed(
                        place.kind, raw, id=place.id, session=session, parent=place.parent
                    )
            except (InvalidInput, *file_format.Damaged):
                self.unusable.append(path)
        later.clear()

    def _take(self, path: str, raw: bytes) -> None:
        folder = path.partition("/")[0]
        if folder == layout.OWNER:
            self._owner(raw)
        elif folder == layout.TOMBSTONE:
            self._tombstone(path, raw)
        elif folder == layout.SCOPE:
            self._scope(path, raw)
        elif path.endswith(layout.SIDECAR):
            place = layout.place_of(path.removesuffix(layout.SIDECAR) + ".json")
            if place is not None:
                self._record(place, file_format.sidecar_numbers(raw), place.session, path)
        else:
            place = layout.place_of(path)
            if place is None or (place.kind in layout.ARRAYS and raw[:1] == b"["):
                return
            if place.kind == "session":
                self._session(place, raw, path)
            else:
                numbers, session = file_format.numbers_of(raw)
                self._record(place, numbers, place.session or session, path)

    def settings(self, raw: bytes) -> None:
        """Enter what the store's marker, or its horizon, says."""
        kept = msgspec.json.decode(raw, type=dict[str, str | int])
        for key, value in kept.items():
            self._db.execute("INSERT OR REPLACE INTO store VALUES (?,?)", (key, str(value)))

    def forget_removals(self) -> None:
        """Raise the horizon to the head: every cursor of before ends in a resync."""
        self._db.execute("UPDATE store SET value=(SELECT max(head) FROM session) WHERE key='horizon'")

    def _number(self, session: str) -> int | None:
        known = self._sessions.get(session)
        if known is None:
            known = self._db.execute("SELECT n FROM session WHERE id=? AND data IS NOT NULL", (session,)).get
            if known is not None:
                self._sessions[session] = known
        return known

    def _session(self, place: TreePlace, raw: bytes, path: str) -> None:
        numbers = file_format.session_numbers(raw)
        if numbers is None:
            self.unusable.append(path)
            return
        columns = columns_of(place.id, raw)
        newer = "SELECT 1 FROM session WHERE id=? AND n=? AND seq>? AND data IS NOT NULL"
        if self._db.execute(newer, (place.id, numbers.number, numbers.seq)).get:
            return  # Left behind in another project's folder.
        claim = numbers.claim or file_format.Claim(None, 0)
        self._enter(place.id, numbers, claim)
        self._db.execute(
            "UPDATE session SET project=?, directory=?, path=?, slug=?, title=?, placement=?, updated=?, "
            "archived=?, agent_run=?, parent=?, at=?, data='' WHERE n=?",
            (*session_values(columns), numbers.at, numbers.number),
        )

    def reserve(self, path: str) -> None:
        """Enter a session whose own file tells nothing: its records need a place. Its numbers come later."""
        place = layout.place_of(path)
        if place is not None and place.kind == "session":
            self._db.execute(
                "INSERT OR IGNORE INTO session(id, position, seq, head, project, data) VALUES (?,0,0,0,?,'')",
                (place.id, place.project),
            )

    def _enter(self, id: str, numbers: file_format.SessionNumbers, claim: file_format.Claim) -> None:
        """The row of a session or scope with its numbers; one that had its id or number before gives way."""
        n = numbers.number
        if self._fresh and self._db.execute("SELECT 1 FROM session WHERE n=? AND id<>?", (n, id)).get:
            raise InvalidInput(f"session {id} has the number of another one")
        self._db.execute("DELETE FROM session WHERE id=?1 AND n<>?2 OR n=?2 AND id<>?1", (id, n))
        self._db.execute(
            "INSERT INTO session(n, id, scope, position, seq, head, top, owner, fence) "
            "VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT(n) DO UPDATE SET position=excluded.position, "
            "seq=excluded.seq, head=max(head, excluded.head), top=max(top, excluded.top), "
            "owner=excluded.owner, fence=excluded.fence",
            (
                n,
                id,
                SCOPE_NUMBER[scope_of(id)],
                numbers.position,
                numbers.seq,
                numbers.head,
                numbers.top,
                claim.owner,
                claim.number,
            ),
        )
        self._sessions[id] = n

    def _scope(self, path: str, raw: bytes) -> None:
        numbers = file_format.session_numbers(raw)
        if numbers is None:
            self.unusable.append(path)
            return
        self._enter(path.rpartition("/")[2].removesuffix(".json"), numbers, file_format.Claim(None, 0))
        self._db.execute("UPDATE session SET data='' WHERE n=?", (numbers.number,))

    def _record(self, place: TreePlace, numbers: file_format.Numbers | None, session: str, path: str) -> None:
        n = self._number(session)
        if numbers is None or n is None:
            self.unusable.append(path)
            return
        kind = KIND_NUMBER[place.kind]
        parent = None
        if kind == PART:
            parent = self._db.execute(
                "SELECT k FROM record WHERE session=? AND id=? AND kind=? AND data IS NOT NULL",
                (n, place.parent, MESSAGE),
            ).get
            if parent is None:
                self.unusable.append(path)
                return
        self._insert(
            n,
            place.kind,
            place.id,
            position=numbers.position,
            seq=numbers.seq,
            parent=parent,
            place=numbers.place,
            mark=numbers.mark,
            at=numbers.at,
            data=ASIDE if place.aside else "",
        )

    def _insert(
        self,
        n: int,
        kind: Kind,
        id: str,
        *,
        position: int,
        seq: int,
        parent: int | None,
        place: int | None = None,
        mark: int = 0,
        at: int | None = None,
        data: str | None = None,
    ) -> None:
        number = KIND_NUMBER[kind]
        k = n << POSITION_BITS | position
        other = "SELECT 1 FROM record WHERE k=? AND (id<>? OR kind<>?)"
        if self._fresh and self._db.execute(other, (k, id, number)).get:
            raise InvalidInput(f"{kind} {id} has the number of another record")
        self._db.execute("DELETE FROM record WHERE session=? AND id=? AND kind=? OR k=?", (n, id, number, k))
        self._db.execute(
            "INSERT INTO record(k, session, kind, mark, seq, place, parent, at, id, data) "
            "VALUES (?,?,?,?,?,?,?,?,?,?)",
            (k, n, number, mark, seq, place, parent, at, id, data),
        )
        top = ids.body(id) if number in (MESSAGE, PART) else ""
        self._db.execute("UPDATE session SET head=max(head, ?), top=max(top, ?) WHERE n=?", (seq, top, n))

    def _tombstone(self, path: str, raw: bytes) -> None:
        named = layout.tombstone_of(path)
        if named is None:
            return
        session, kind, id = named
        if kind == "session":
            numbers = file_format.session_numbers(raw)
            if numbers is None:
                self.unusable.append(path)
                return
            was = typed.decode(raw, _Was)
            self._erased(id, numbers, was)
            return
        n = self._number(session)
        grave = file_format.grave_of(raw)
        if n is None:
            self.unusable.append(path)
            return
        message = self._db.execute(
            "SELECT k FROM record WHERE session=? AND id=? AND kind=?", (n, grave.parent, MESSAGE)
        ).get
        self._insert(n, kind, id, position=grave.position, seq=grave.seq, parent=message, at=grave.at)

    def _erased(self, id: str, numbers: file_format.SessionNumbers, was: _Was) -> None:
        self._enter(id, numbers, numbers.claim or file_format.Claim(None, 0))
        n = numbers.number
        self._db.execute("DELETE FROM record WHERE session=?", (n,))
        self._db.execute(
            "UPDATE session SET head=seq, top='', owner=NULL, project=?, directory=?, path=NULL, slug=NULL, "
            "title=NULL, parent=NULL, placement=NULL, updated=NULL, archived=NULL, agent_run=NULL, "
            "at=?, data=NULL WHERE n=?",
            (was.projectID, was.directory, numbers.at, n),
        )
        self._sessions.pop(id, None)

    def _owner(self, raw: bytes) -> None:
        owner = msgspec.json.decode(raw, type=dict[str, object])
        dead = int(bool(owner.pop("dead", False)))
        # A lease is not kept in the tree. A living owner renews it before it ends.
        deadlines = (self._clock.boot_ms() + LEASE_MS, self._clock.now_ms() + LEASE_MS)
        self._db.execute(
            "INSERT INTO owner(id, data, deadline_boot, deadline_wall, dead) VALUES (?,?,?,?,?) "
            "ON CONFLICT(id) DO UPDATE SET dead=excluded.dead",
            (owner["id"], msgspec.json.encode(owner).decode(), *deadlines, dead),
        )

    def forget(self, gone: Iterable[tuple[str, str]]) -> None:
        """Take out what files that are gone stood for; what took their place comes through `take`."""
        for path, session in gone:
            if path.startswith(f"{layout.OWNER}/"):
                id = path.rpartition("/")[2].removesuffix(".json")
                self._db.execute("DELETE FROM owner WHERE id=?", (id,))
                continue
            named = layout.tombstone_of(path)
            if named is not None:
                self._forget(*named, live=False)
            elif (place := layout.place_of(path)) is not None and place.kind != "session":
                self._forget(session, place.kind, place.id, live=True)

    def _forget(self, session: str, kind: Kind, id: str, *, live: bool) -> None:
        state = "IS NOT NULL" if live else "IS NULL"
        if kind == "session":
            self._db.execute("DELETE FROM session WHERE id=? AND data IS NULL", (id,))
            self._sessions.pop(id, None)
            return
        n = self._db.execute("SELECT n FROM session WHERE id=?", (session,)).get
        where = f"session=? AND kind=? AND id=? AND data {state}"
        self._db.execute(f"DELETE FROM record WHERE {where}", (n, KIND_NUMBER[kind], id))

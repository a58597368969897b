"""Which of the rows that were found make the new store, and what is missing then. Pure.

The newest sound state of a row wins. What was removed stays removed wherever the file still says so: by a
tombstone, by an index of tombstones, or by an index of names that is whole and does not have it.
"""

from collections.abc import Callable, Iterable

import msgspec

from holdfast.schema import ids
from holdfast.schema.stored import KINDS
from holdfast.store.batch import scope_of
from holdfast.store.columns import KIND_NUMBER, MESSAGE, PART, SCOPE_NUMBER, stub
from holdfast.store.report import complaint
from holdfast.store.sqlite.salvage.harvest import Harvest, content
from holdfast.store.sqlite.salvage.key_ranges import within
from holdfast.store.sqlite.salvage.numbers import Numbers
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.sqlite.salvage.report import Incomplete, SalvageReport
from holdfast.store.sqlite.salvage.rows import Row
from holdfast.store.sqlite.salvage.session_ids import owners, rehomed
from holdfast.store.sqlite.salvage.session_info import above_of, marked, title_of
from holdfast.store.tables.ddl import POSITION_BITS

_SCOPED = range(KIND_NUMBER["project"], len(KINDS))


class KeptSession(msgspec.Struct):
    """A session of the new store. `data` None: it was removed, and stays so."""

    row: Row
    data: bytes | None
    records: list[Row] = []
    lost: list[str] = []
    head: int = 0
    top: str = ""


class Aside(msgspec.Struct, frozen=True):
    """A row that could be read and belongs to nothing: it is kept in quarantine."""

    reason: str
    session: str
    row: Row


class Choice(msgspec.Struct):
    """What goes into the new store, and the report of it."""

    sessions: list[KeptSession]
    aside: list[Aside]
    report: SalvageReport


class Chooser:
    """Goes through a harvest once."""

    def __init__(self, pages: Pages, found: Harvest, *, now_ms: int, mint: Callable[[], str]) -> None:
        self._pages = pages
        self._found = found
        self._now_ms = now_ms
        self._mint = mint
        self._aside: list[Aside] = []
        self._lost: list[str] = []
        self._numbers = Numbers(found)
        self._live = {(row.page, row.offset) for rows in found.live.values() for row in rows}
        self._records = _grouped(found.live["record"], found.stray["record"])
        names = found.session_names.entries
        self._names = {n: id for n in names if (id := _name(names[n], 0)) is not None}
        self._sessions = rehomed(_grouped(found.live["session"], found.stray["session"]), self._names)
        self._owners = owners(self._sessions, self._names)

    def run(self) -> Choice:
        """Choose."""
        by_session: dict[int, list[int]] = {}
        for k in sorted(self._records.keys() | self._found.record_names.entries.keys()):
            by_session.setdefault(k >> POSITION_BITS, []).append(k)
        kept: list[KeptSession] = []
        for n in sorted(self._sessions.keys() | by_session.keys() | self._found.session_names.entries.keys()):
            session = self._session(n, by_session.get(n, []))
            if session is not None:
                kept.append(session)
        self._give_parents(kept)
        self._note_lost_ends(kept)
        for session in kept:
            if session.data and session.lost and session.row.scope == 0:
                session.data = marked(session.data)
        return Choice(kept, self._aside, self._report(kept))

    def _session(self, n: int, keys: list[int]) -> KeptSession | None:
        if n in self._found.removed_sessions or self._is_gone(n):
            states = [row for k in keys for row in self._records.get(k, [])[:1] if self._is_live(row)]
            self._put_aside("its session is missing", [row for row in states if not row.removed])
            keys = []
        row, data = self._session_row(n)
        if row is not None and row.removed:
            if self._owners[row.id] != n:
                return None
            row = self._numbers.numbered(row)
            return KeptSession(row, None, head=row.seq)
        former = row.id if row is not None else self._names.get(n)
        id = self._own_id(n, former)
        records, lost = self._contents(keys, id or "")
        if former is not None and self._owners.get(former) != n and id != self._names.get(n):
            lost.insert(0, f"its id, since another session has {former}")
        elif id is not None and self._names.get(n, id) != id:
            lost.insert(0, f"certainty of its id, which the index says is {self._names[n]},")
        if row is not None and id is not None:
            row = msgspec.structs.replace(row, id=id)
        if row is None and not records:
            if id is not None and n not in self._found.removed_sessions:
                self._lost.append(f"session {id}, with {len(lost)} records")
            return None
        if id is None and (row is not None or any(each.kind in _SCOPED for each in records)):
            self._put_aside("its project is unknown", [each for each in records if not each.removed])
            return None
        if id is not None and scope_of(id) != "session" and (row is None or data is None):
            row, data = self._made_scope(n, id), b""
        elif row is None or data is None:
            row, data = self._made_up(n, row, id or self._mint(), records)
            lost.insert(0, "its own record")
        elif row.scope == 0 and self._is_former(n, row):
            lost.insert(0, "the latest state of its own record, or certainty of it,")
        row = self._numbers.numbered(row)
        head = max([row.seq, *(each.seq for each in records)])
        bodies = [ids.body(each.id) for each in records if each.kind in (MESSAGE, PART)]
        return KeptSession(row, data, records, lost, head, max(bodies, default=""))

    def _own_id(self, n: int, former: str | None) -> str | None:
        """The id that a session keeps; a new one when another has it. None: it has none, or is no session."""
        for id in (former, self._names.get(n)):
            if id is not None and self._owners.get(id) == n:
                return id
        return self._mint() if former is not None and scope_of(former) == "session" else None

    def _put_aside(self, reason: str, rows: list[Row]) -> None:
        self._aside += [Aside(reason, "", row) for row in rows]
        self._lost += [f"{KINDS[row.kind]} {row.id}: {reason}" for row in rows]

    def _is_gone(self, n: int) -> bool:
        return n not in self._sessions and self._found.session_names.whole and not self._known(n)

    def _is_former(self, n: int, row: Row) -> bool:
        """Whether an index has a later state of a session: what changes it or its records moves its head.

        Numbers only rise, so even an index of the past has none above that of the latest state.
        """
        return row.head < self._found.heads.get(n, 0)

    def _known(self, n: int) -> bool:
        return n in self._found.session_names.entries

    def _session_row(self, n: int) -> tuple[Row | None, bytes | None]:
        """The row of a session and its JSON; a row without JSON when only its columns are left."""
        fallback: Row | None = None
        for found in self._sessions.get(n, []):
            row = msgspec.structs.replace(found, scope=SCOPE_NUMBER[scope_of(found.id)])
            is_live = self._is_live(row)
            if not is_live and self._found.session_names.whole and not self._known(n):
                continue
            if row.removed and n not in self._found.removed_sessions and self._is_former(n, row):
                continue  # It was made again.
            if row.removed:
                return row, None
            if not is_live and n in self._found.removed_sessions:
                continue
            data = content(self._pages, row)
            if row.scope != 0 and data is not None:
                return row, b""
            if data is not None and not complaint("session", data, id=row.id, session=row.id, parent=None):
                return row, data
            fallback = fallback or row
        return fallback, None

    def _made_scope(self, n: int, id: str) -> Row:
        """A project or a machine: it has numbers, and no content of its own."""
        seq, scope = self._numbers.new(), SCOPE_NUMBER[scope_of(id)]
        return Row(n, n, 0, id, seq, seq, removed=False, torn=False, page=0, offset=0, scope=scope)

    def _made_up(self, n: int, row: Row | None, id: str, records: list[Row]) -> tuple[Row, bytes]:
        """A session whose own record is gone, from what is left of it."""
        seq = self._numbers.new()
        info = msgspec.json.decode(
            stub(row.project if row else None, row.directory if row else None, self._now_ms)
        )
        info["title"] = (row.title if row is not None else None) or "Recovered session"
        info["directory"] = info["directory"] or "/"
        if row is not None and row.above is not None:
            info["parentID"] = row.above
        position = min([seq, *(each.position for each in records)])
        fence = row.fence if row is not None else 0
        made = Row(n, n, 0, id, seq, position, removed=False, torn=False, page=0, offset=0, fence=fence)
        return made, msgspec.json.encode(info)

    def _contents(self, keys: list[int], session: str) -> tuple[list[Row], list[str]]:
        chosen: dict[int, Row] = {}
        lost: list[str] = []
        newest: dict[tuple[int, str | None], int] = {}
        removed = self._found.removed_records
        for k in keys:  # A name that was removed and made again has a greater key the second time.
            newest.update(((row.kind, row.id), k) for row in self._records.get(k, [])[:1])
        for k in keys:
            states = self._records.get(k, [])
            if states and newest[states[0].kind, states[0].id] != k:
                continue
            other = None if states else newest.get(self._entry(k))
            # Unless the row is a former tombstone: then the record was made again, under this key.
            if other is not None and (other in removed or not self._records[other][0].removed):
                continue  # The row is there, and its key is wrong, here or in the index.
            row = self._record(k, session, chosen, lost)
            if row is None:
                continue
            if newest.get((row.kind, row.id), k) != k:  # An older state, under a name that another row has.
                self._aside.append(Aside("its name was given twice", session, row))
                lost.append(f"{KINDS[row.kind]} {row.id}")
                continue
            newest[row.kind, row.id] = k
            chosen[k] = row
            if (named := self._entry(k)) not in newest and named[1] is not None:
                lost.append(f"certainty of the name of {KINDS[row.kind]} {row.id}, for the index {named[1]},")
        return list(chosen.values()), lost

    def _record(self, k: int, session: str, chosen: dict[int, Row], lost: list[str]) -> Row | None:
        refused: list[Aside] = []
        for row in self._records.get(k, []):
            if row.removed:
                return self._numbers.numbered(row)
            if not self._is_live(row) and (k in self._found.removed_records or self._is_stale(k)):
                continue
            reason = self._refusal(row, session, chosen)
            if not reason:
                # Of another name, and under this key by damage: no other key leads to it.
                others = [each for each in refused if (each.row.kind, each.row.id) != (row.kind, row.id)]
                self._refuse([each for each in others if self._is_live(each.row)], lost)
                return self._taken(row, lost)
            refused.append(Aside(reason, session, row))
        entry = self._found.record_names.entries.get(k)
        if k in self._found.removed_records or (entry is None and not refused):
            return None
        self._aside += [each for each in refused if not each.row.torn]
        kind, id = (refused[0].row.kind, refused[0].row.id) if refused else self._entry(k)
        lost.append(f"{KINDS[kind] if 0 <= kind < len(KINDS) else 'record'} {id}")
        return None

    def _taken(self, row: Row, lost: list[str]) -> Row:
        if row.seq < self._found.moved.get(row.key, 0):
            lost.append(f"the latest state of {KINDS[row.kind]} {row.id}")
        return self._numbers.numbered(row)

    def _refuse(self, refused: list[Aside], lost: list[str]) -> None:
        self._aside += [each for each in refused if not each.row.torn]
        lost += [f"{KINDS[each.row.kind]} {each.row.id}" for each in refused]

    def _entry(self, k: int) -> tuple[int, str | None]:
        """What the index calls a record: its kind and its id."""
        entry = self._found.record_names.entries.get(k, ())
        return _number(entry, 2), _name(entry, 1)

    def _is_live(self, row: Row) -> bool:
        return (row.page, row.offset) in self._live

    def _is_stale(self, k: int) -> bool:
        names = self._found.record_names
        return names.whole and k not in names.entries

    def _refusal(self, row: Row, session: str, chosen: dict[int, Row]) -> str:
        """Why a row cannot be in the new store; empty when it can."""
        if row.torn or (data := content(self._pages, row)) is None:
            return "its content is gone"
        message = chosen.get(row.parent) if row.parent is not None else None
        if row.kind == PART and (message is None or message.removed or message.kind != MESSAGE):
            return "its message is gone"
        parent = message.id if message is not None else None
        return complaint(KINDS[row.kind], data, id=row.id, session=session, parent=parent) or ""

    def _give_parents(self, kept: list[KeptSession]) -> None:
        """A session that others lie below, and of which nothing is left, is made up: they must be found."""
        known = {each.row.id for each in kept if each.data is not None}
        gone = {each.row.id for each in kept if each.data is None}
        number = max((each.row.key for each in kept), default=0)
        for each in tuple(kept):
            above = above_of(each.data)
            if above is None or above in known or above in gone:
                continue
            known.add(above)
            number += 1
            row, data = self._made_up(number, None, above, [])
            kept.append(KeptSession(row, data, [], ["its own record"], row.seq))

    def _in_doubt(self, sessions: Iterable[KeptSession]) -> set[int]:
        """The numbers of sessions that may have lost records which no index names."""
        proved = self._found.record_names.whole and self._found.session_names.whole
        lost = [] if proved else self._found.lost["record"].values()
        ranges = ((low >> POSITION_BITS, high >> POSITION_BITS) for low, high in lost)
        return within((each.row.key for each in sessions), ranges)

    def _note_lost_ends(self, kept: list[KeptSession]) -> None:
        """A session in doubt that has nothing up to its latest number has lost what was written last.

        Elsewhere the number proves nothing: it may be that of a tombstone that was swept.
        """
        in_doubt = self._in_doubt(kept)
        for each in kept:
            if each.data is not None and each.row.key in in_doubt and each.row.head > each.head:
                each.lost.append(f"its newest records, up to number {each.row.head},")

    def _report(self, kept: list[KeptSession]) -> SalvageReport:
        living = [each for each in kept if each.data is not None and each.row.scope == 0]
        whole = [each for each in living if not each.lost]
        scoped = [each for each in kept if each.data is not None and each.row.scope != 0]
        proved = self._found.record_names.whole and self._found.session_names.whole
        unproved = not proved and any(self._found.lost.values())
        in_doubt = self._in_doubt(whole)
        return SalvageReport(
            tuple(each.row.id for each in whole),
            tuple(
                Incomplete(each.row.id, title_of(each.data), tuple(each.lost)) for each in living if each.lost
            ),
            (*self._lost, *(f"{name} of {each.row.id}" for each in scoped for name in each.lost)),
            tuple(each.row.id for each in whole if each.row.key in in_doubt),
            sum(not row.removed for each in kept for row in each.records),
            self._found.pages,
            self._pages_lost(),
            self._gaps(unproved=unproved),
            unproved,
            self._found.trouble,
        )

    def _pages_lost(self) -> int:
        found = self._found
        indexes = found.record_names.pages_lost + found.session_names.pages_lost
        return len({page for lost in found.lost.values() for page in lost}) + found.quarantine_lost + indexes

    def _gaps(self, *, unproved: bool) -> tuple[str, ...]:
        """What is missing without a name: indexes name what the tables had, where they are whole themselves;
        a whole table needs none, and of what was set aside there is no index.
        """
        gaps = [self._pages.missing] if self._pages.missing else []
        if self._found.quarantine_lost or unproved:
            count = self._pages_lost()
            gaps.append(f"{count} pages of tables and indexes cannot be read: more may be lost than is named")
        return tuple(gaps)


def _grouped(live: list[Row], stray: list[Row]) -> dict[int, list[Row]]:
    """Every state of each row, the newest first; of two equal ones that of the tree itself."""
    states: dict[int, list[Row]] = {}
    for row in (*live, *stray):
        states.setdefault(row.key, []).append(row)
    for rows in states.values():
        rows.sort(key=lambda row: -row.seq)  # Stable: live ones stay in front.
    return states


def _name(columns: tuple[object, ...], at: int) -> str | None:
    found = columns[at] if len(columns) > at else None
    return found.decode(errors="replace") if isinstance(found, bytes) else None


def _number(columns: tuple[object, ...], at: int) -> int:
    found = columns[at] if len(columns) > at else None
    return found if isinstance(found, int) else -1

"""Reads messages with their parts from the tables, as records or as JSON that is not decoded."""

from collections.abc import Callable, Iterable
from functools import cache
from io import BytesIO
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from holdfast.errors import NotFound
from holdfast.schema.stored import Mark
from holdfast.store import reverted
from holdfast.store.columns import MESSAGE
from holdfast.store.cursor import page_text, parse_page
from holdfast.store.kept_tail import tail_of
from holdfast.store.query import MessageQuery, check_limit
from holdfast.store.record import (
    JsonPage,
    MadePage,
    MessagePage,
    SessionRecord,
    StoredMessage,
    StoredRecord,
)
from holdfast.store.reverted import Hidden
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK
from holdfast.store.tables.records import RECORD, RecordReader, stored_record

T = TypeVar("T")

_MESSAGES = (
    "SELECT m.k, m.mark, m.seq, m.place, m.id, CAST(m.data AS BLOB), "
    "p.k, p.mark, p.seq, p.place, p.id, CAST(p.data AS BLOB) "
    "FROM record m LEFT JOIN record p ON p.parent = m.k AND p.data IS NOT NULL {parts} "
    "WHERE m.k BETWEEN ?1 AND ?2 AND m.kind=1 AND m.data IS NOT NULL "
    "AND ifnull(m.place, m.k & 1099511627775) >= ?3 {shown} ORDER BY m.k, p.k"
)
# The text of a record with its head fields spliced back, made by SQLite, so that forwarding costs no decode.
_JSON = (
    "SELECT m.k, "
    'CAST(\'{"id":"\' || m.id || ?1 || substr(m.data, 2) AS BLOB), '
    "CAST('{\"id\":\"' || p.id || ?2 || m.id || '\",' || substr(p.data, 2) AS BLOB) "
    "FROM record m LEFT JOIN record p ON p.parent = m.k AND p.data IS NOT NULL {parts} "
    "WHERE m.k BETWEEN ?3 AND ?4 AND m.kind=1 AND m.data IS NOT NULL "
    "AND ifnull(m.place, m.k & 1099511627775) >= ?5 {shown} ORDER BY m.k, p.k"
)

_WALK = (
    "SELECT m.k, m.parent, CAST(m.id AS BLOB), substr(CAST(m.data AS BLOB), 2) FROM record m "
    "WHERE m.k BETWEEN ? AND ? AND m.kind BETWEEN 1 AND 2 AND m.data IS NOT NULL {shown} ORDER BY m.k"
)
_WALK_RECORDS = (
    "SELECT m.k, m.parent, m.mark, m.seq, m.place, m.id, CAST(m.data AS BLOB) FROM record m "
    "WHERE m.k BETWEEN ? AND ? AND m.kind BETWEEN 1 AND 2 AND m.data IS NOT NULL {shown} ORDER BY m.k"
)
_LATE_PARTS = (
    "SELECT m.k, m.parent, m.mark, m.seq, m.place, m.id, CAST(m.data AS BLOB) FROM record m "
    "WHERE m.parent BETWEEN ?1 AND ?2 AND m.k>?2 AND m.data IS NOT NULL ORDER BY m.k"
)
_KEYS = (
    "SELECT m.k FROM record m WHERE m.k BETWEEN ? AND ? AND m.kind=1 AND m.data IS NOT NULL "
    "AND ifnull(m.place, m.k & 1099511627775) >= ? {shown} ORDER BY m.k"
)
_RISING, _FALLING = f"{_KEYS} ASC LIMIT ?", f"{_KEYS} DESC LIMIT ?"
_MARKS = tuple(Mark)
_PIECES = 2_000
_ONE_PART, _MORE_PART = b'{"id":"', b',{"id":"'
_FIRST_PART, _NEXT_PART = b',"parts":[{"id":"', b',{"id":"'


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """The keys between which a page lies, its least place, what is hidden, and the cursors beside it."""

    low: int
    high: int
    place: int = 0
    hidden: Hidden | None = None
    older: str | None = None
    newer: str | None = None


class Reader(RecordReader):
    """All reads of one connection."""

    def messages(self, query: MessageQuery) -> MessagePage:
        """A page of messages with their parts, in one statement."""
        at = self._range(query)
        if _goes_to_the_end(query, at):
            statement = shown(_WALK_RECORDS, system=query.system)
            found = _gathered(query.session, self._db.execute(statement, (at.low, at.low | POSITION_MASK)))
        else:
            found = self._joined_records(query, at)
        return MessagePage(tuple(found), at.older, at.newer)

    def originals(self, session: str, below: int | None = None) -> list[StoredMessage]:
        """Messages that are to be copied."""
        n = self.number(session)
        if n is None:
            return []
        low = n << POSITION_BITS
        # No place is before its position, so that none of them lies behind; but parts of theirs may.
        below = POSITION_MASK if below is None else min(below, POSITION_MASK)
        walked = self._db.execute(shown(_WALK_RECORDS, system=True), (low, low | below))
        late = self._db.execute(_LATE_PARTS, (low, low | below)) if below < POSITION_MASK else ()
        return _gathered(session, chain(walked, late), below)

    def _joined_records(self, query: MessageQuery, at: Range) -> list[StoredMessage]:
        """The messages of any page, each with its parts, wherever they lie."""
        session, statement = query.session, shown(_MESSAGES, system=query.system, hidden=at.hidden)
        messages: list[tuple[StoredRecord, list[StoredRecord]]] = []
        parts: list[StoredRecord] = []
        last = -1
        for k, mark, seq, placed, id, data, pk, pmark, pseq, pplace, pid, pdata in self._db.execute(
            statement, (at.low, at.high, at.place)
        ):
            if k != last:
                last, parts, position = k, [], k & POSITION_MASK
                info = StoredRecord(
                    session, "message", id, None, position, seq, placed or position, _MARKS[mark], data
                )
                messages.append((info, parts))
            if pk is not None:
                position = pk & POSITION_MASK
                parts.append(
                    StoredRecord(
                        session, "part", pid, id, position, pseq, pplace or position, _MARKS[pmark], pdata
                    )
                )
        return [StoredMessage(info, tuple(below)) for info, below in messages]

    def messages_json(self, query: MessageQuery) -> JsonPage:
        """The same page as JSON: flat lists of pieces, few joins, nothing decoded."""
        at = self._range(query)
        body = None
        if _goes_to_the_end(query, at):
            body = self._walk(query, at.low, at.low | POSITION_MASK)
        if body is None:
            body = b"".join(self._joined(query, at))
        return JsonPage(body, at.older, at.newer)

    def messages_made(self, query: MessageQuery, make: Callable[[bytes], T]) -> MadePage[T]:
        """The same page, made of the JSON of each message."""
        at = self._range(query)
        made = None
        if _goes_to_the_end(query, at):
            made = self._walk_made(query, at.low, at.low | POSITION_MASK, make)
        if made is None:
            made = self._joined_made(query, at, make)
        return MadePage(tuple(made), at.older, at.newer)

    def _walk_made(
        self, query: MessageQuery, low: int, high: int, make: Callable[[bytes], T]
    ) -> list[T] | None:
        """As `_walk`, a message at a time: what is decoded at once stays in the processor's own memory."""
        session, statement = query.session.encode(), shown(_WALK, system=query.system)
        head = b'","sessionID":"%b",' % session
        part_head = b'","sessionID":"%b","messageID":"' % session
        made: list[T] = []
        pieces: list[bytes] = []
        current, before, behind = -1, b"", b""
        for k, parent, id, data in self._db.execute(statement, (low, high)):
            if parent == current:
                pieces += (before, id, behind, data)
                before = _MORE_PART
            elif parent is None:
                if pieces:
                    pieces.append(b"]}")
                    made.append(make(b"".join(pieces)))
                pieces = [b'{"info":{"id":"', id, head, data, b',"parts":[']
                current, before, behind = k, _ONE_PART, part_head + id + b'",'
            else:
                return None
        if pieces:
            pieces.append(b"]}")
            made.append(make(b"".join(pieces)))
        return made

    def _joined_made(self, query: MessageQuery, at: Range, make: Callable[[bytes], T]) -> list[T]:
        """As `_joined`, a message at a time."""
        head = f'","sessionID":"{query.session}",'
        part_head = f'","sessionID":"{query.session}","messageID":"'
        statement = shown(_JSON, system=query.system, hidden=at.hidden)
        rows = self._db.execute(statement, (head, part_head, at.low, at.high, at.place))
        made: list[T] = []
        for _, of_message in groupby(rows, itemgetter(0)):
            found = list(of_message)
            parts = b",".join([part for _, _, part in found if part is not None])
            made.append(make(b'{"info":%b,"parts":[%b]}' % (found[0][1], parts)))
        return made

    def _walk(self, query: MessageQuery, low: int, high: int) -> bytes | None:
        """The JSON of a page that goes to the end, in one walk: parts follow their message.

        None when one does not, because it was added to an earlier message later on. Pieces are joined a few
        at a time, so that a long page does not lie in memory twice.
        """
        body = BytesIO()
        session, statement = query.session.encode(), shown(_WALK, system=query.system)
        head = b'","sessionID":"%b",' % session
        part_head = b'","sessionID":"%b","messageID":"' % session
        pieces = [b"["]
        current, before, behind = -1, b"", b""
        for k, parent, id, data in self._db.execute(statement, (low, high)):
            if parent == current:
                pieces += (before, id, behind, data)
                before = _NEXT_PART
            elif parent is None:
                if current < 0:
                    opening = b'{"info":{"id":"'
                else:
                    opening = (
                        b',"parts":[]},{"info":{"id":"' if before is _FIRST_PART else b']},{"info":{"id":"'
                    )
                if len(pieces) >= _PIECES:
                    body.write(b"".join(pieces))
                    pieces.clear()
                pieces += (opening, id, head, data)
                current, before, behind = k, _FIRST_PART, part_head + id + b'",'
            else:
                return None
        pieces.append(b"]" if current < 0 else b',"parts":[]}]' if before is _FIRST_PART else b"]}]")
        body.write(b"".join(pieces))
        return body.getvalue()

    def _joined(self, query: MessageQuery, at: Range) -> list[bytes]:
        """The pieces of any page: each message with its parts, wherever they lie."""
        session, statement = query.session, shown(_JSON, system=query.system, hidden=at.hidden)
        head = f'","sessionID":"{session}",'
        part_head = f'","sessionID":"{session}","messageID":"'
        pieces: list[bytes] = [b"["]
        add = pieces.append
        last = -1
        for k, info, part in self._db.execute(statement, (head, part_head, at.low, at.high, at.place)):
            if k != last:
                add(b'{"info":' if last < 0 else b']},{"info":')
                add(info)
                add(b',"parts":[')
                last = k
                if part is not None:
                    add(part)
            else:
                add(b",")
                add(part)
        add(b"]}]" if last >= 0 else b"]")
        return pieces

    def _range(self, query: MessageQuery) -> Range:
        """Where a page lies."""
        n = self.number(query.session)
        record = None if n is None else self.session(query.session)
        if n is None or record is None:
            raise NotFound(f"session {query.session} does not exist")
        first, last = n << POSITION_BITS, n << POSITION_BITS | POSITION_MASK
        if query.only is not None:
            only = self.get(query.session, "message", query.only)
            at = first | only.position if only is not None else first
            return Range(low=at, high=at)
        hidden = None if query.reverted else self._hidden(record)
        begin, low, high, place = first, first, last, 0
        if query.before is not None:
            high = min(last, (first | parse_page(query.before)) - 1)
        if query.after is not None:
            low = min(last, (first | parse_page(query.after)) + 1)  # Never into the next session.
        if query.since_compaction:
            place = self._tail(n, query.session, POSITION_MASK if hidden is None else hidden.below)
            begin = self._first_placed(n, place)
            low = max(low, begin)
        if query.limit is None:
            return Range(low=low, high=high, place=place, hidden=hidden)
        limit = check_limit(query.limit)
        forward = query.after is not None and query.before is None

        def nearest(low: int, high: int, count: int, *, forward: bool) -> list[int]:
            statement = shown(_RISING if forward else _FALLING, system=query.system, hidden=hidden)
            return [k for (k,) in self._db.execute(statement, (low, high, place, count))]

        keys = nearest(low, high, limit + 1, forward=forward)
        if not keys:
            return Range(low=first, high=first, place=POSITION_MASK)  # No message has this place.
        more, keys = len(keys) > limit, sorted(keys[:limit])
        older = bool(nearest(begin, keys[0] - 1, 1, forward=False)) if forward else more
        newer = more if forward else bool(nearest(keys[-1] + 1, last, 1, forward=True))
        return Range(
            low=keys[0],
            high=keys[-1],
            place=place,
            hidden=hidden,
            older=page_text(keys[0] & POSITION_MASK) if older else None,
            newer=page_text(keys[-1] & POSITION_MASK) if newer else None,
        )

    def _hidden(self, record: SessionRecord) -> Hidden | None:
        """What a revert that is staged in the session hides."""
        point = reverted.point_in(record.data)
        if point is None:
            return None
        part = None if point.partID is None else self.get(record.id, "part", point.partID)
        return reverted.hidden(self.get(record.id, "message", point.messageID), part)

    def _first_placed(self, n: int, place: int) -> int:
        """The least key of a message at this place or after it: a promoted prompt was created before."""
        first = n << POSITION_BITS
        promoted = self._db.execute("SELECT min(k) FROM record WHERE session=? AND place>=?", (n, place)).get
        return min(first | place, promoted or first | place)

    def _tail(self, n: int, session: str, below: int) -> int:
        """The place from which the model still sees messages: 0 when nothing was compacted.

        Only compactions with a summary at a place before `below` count.
        """
        summaries = self._db.execute(
            RECORD
            + "WHERE r.mark>0 AND r.mark=2 AND r.kind=? AND r.session=? AND r.data IS NOT NULL "
            + "ORDER BY r.k DESC",
            (MESSAGE, n),
        )
        found = (stored_record(session, row) for row in summaries)
        return tail_of(
            (summary for summary in found if summary.place < below),
            lambda id: self.get(session, "message", id),
            lambda id: self._parts(n, session, id),
        )

    def _parts(self, n: int, session: str, message: str) -> Iterable[StoredRecord]:
        rows = self._db.execute(
            RECORD + "WHERE r.parent=(SELECT k FROM record WHERE session=? AND id=? AND kind=?) "
            "AND r.data IS NOT NULL ORDER BY r.k",
            (n, message, MESSAGE),
        )
        return [stored_record(session, row) for row in rows]


def _gathered(
    session: str, rows: Iterable[tuple[Any, ...]], below: int = POSITION_MASK
) -> list[StoredMessage]:
    """The messages in a walk along the keys, each with its parts: nearly every part follows its message."""
    messages: dict[int, tuple[StoredRecord, list[StoredRecord]]] = {}
    parts: list[StoredRecord] = []
    current, message = -1, ""
    for k, parent, mark, seq, place, id, data in rows:
        position = k & POSITION_MASK
        if parent is None:
            if (place or position) >= below:
                continue
            current, message, parts = k, id, []
            info = StoredRecord(
                session, "message", id, None, position, seq, place or position, _MARKS[mark], data
            )
            messages[k] = info, parts
            continue
        if parent != current:  # It was added to an earlier message later on, or its message is left out.
            if parent not in messages:
                continue
            info, parts = messages[parent]
            current, message = parent, info.id
        parts.append(
            StoredRecord(session, "part", id, message, position, seq, place or position, _MARKS[mark], data)
        )
    return [StoredMessage(info, tuple(each)) for info, each in messages.values()]


def _goes_to_the_end(query: MessageQuery, at: Range) -> bool:
    """Whether a page is all that follows its first message, so that one walk can read it."""
    whole = at.newer is None and at.place == 0 and at.hidden is None
    return whole and query.before is None and query.only is None


def shown(statement: str, *, system: bool, hidden: Hidden | None = None) -> str:
    """A statement over the messages `m` and their parts `p`, with those of the system or without, and
    without what is hidden.
    """
    if hidden is None:
        return _shown(statement, system=system)
    place = f"AND ifnull(m.place, m.k & {POSITION_MASK}) < {hidden.below}"
    parts = ""
    if hidden.part is not None:
        parts = (
            f"AND NOT (m.k & {POSITION_MASK} = {hidden.message} AND p.k & {POSITION_MASK} >= {hidden.part})"
        )
    system_ = "" if system else _NO_SYSTEM
    return statement.replace("{shown}", f"{system_} {place}").replace("{parts}", parts)


_NO_SYSTEM = f"AND m.mark<>{int(Mark.SYSTEM)}"


@cache
def _shown(statement: str, *, system: bool) -> str:
    return statement.replace("{shown}", "" if system else _NO_SYSTEM).replace("{parts}", "")

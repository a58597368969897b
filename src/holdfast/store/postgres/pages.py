"""Pages of messages with their parts, as records or as JSON that is not decoded."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import msgspec

from holdfast.errors import NotFound
from holdfast.schema import typed
from holdfast.schema.stored import Mark
from holdfast.store import reverted
from holdfast.store.cursor import page_text, parse_page
from holdfast.store.kept_tail import tail_of
from holdfast.store.postgres.connections import Connection, Connections, Row
from holdfast.store.postgres.reader import plain, stored_record
from holdfast.store.postgres.sql import statements
from holdfast.store.query import MessageQuery, check_limit
from holdfast.store.record import JsonPage, MadePage, MessagePage, StoredMessage, StoredRecord
from holdfast.store.reverted import Hidden

T = TypeVar("T")

POSITION_MAX = 2**62


class _Named(msgspec.Struct, frozen=True):
    parentID: str = ""  # noqa: N815 - the wire's name
    tail_start_id: str | None = None


_named = typed.decoder(_Named)


class Pages:
    """The messages of a session."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._sql = statements(schema)

    async def messages(self, query: MessageQuery) -> MessagePage:
        """A page as records."""
        rows, older, newer = await self._read(query)
        return MessagePage(tuple(_gathered(query.session, rows)), older, newer)

    async def originals(self, session: str, below: int | None = None) -> list[StoredMessage]:
        """Messages that are to be copied."""
        async with self._connections.use() as connection:
            limit = POSITION_MAX if below is None else below
            rows = await connection.fetch(self._sql["originals"], plain(session), limit)
        return _gathered(session, rows)

    async def messages_json(self, query: MessageQuery) -> JsonPage:
        """The same page as JSON: one flat list of pieces, one join."""
        rows, older, newer = await self._read(query)
        pieces: list[str] = []
        for each in _json(query.session, rows):
            pieces.append("," if pieces else "[")
            pieces += each
        pieces.append("]" if pieces else "[]")
        return JsonPage("".join(pieces).encode(), older, newer)

    async def messages_made(self, query: MessageQuery, make: Callable[[bytes], T]) -> MadePage[T]:
        """The same page, made of each message's JSON."""
        rows, older, newer = await self._read(query)
        made = tuple(make("".join(each).encode()) for each in _json(query.session, rows))
        return MadePage(made, older, newer)

    async def _read(self, query: MessageQuery) -> tuple[Sequence[Row], str | None, str | None]:
        """The rows of the page, and the cursors of the pages beside it, all of one moment."""
        low = parse_page(query.after) if query.after is not None else 0
        high = parse_page(query.before) if query.before is not None else POSITION_MAX
        limit = None if query.limit is None else check_limit(query.limit)
        forward = query.after is not None and query.before is None
        async with (
            self._connections.use() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            found = await connection.fetchrow(self._sql["session_number"], plain(query.session))
            if found is None:
                raise NotFound(f"session {query.session} does not exist")
            n, hidden = found["n"], None
            if query.only is not None:
                low, high = await self._around(connection, query)
                limit = None
            elif found["data"] is not None and not query.reverted:
                hidden = await self._hidden(connection, query.session, found["data"].encode())
            place = await self._tail(connection, query.session, hidden) if query.since_compaction else 0
            statement = self._shown("messages", query, hidden)
            statement = statement.replace("{direction}", "ASC" if forward else "DESC")
            rows = await connection.fetch(
                statement, n, low, high, place, None if limit is None else limit + 1
            )
            if limit is None or not rows:
                return rows, None, None
            rows, more = _cut(rows, limit, forward=forward)
            first, last = rows[0]["position"], rows[-1]["position"]
            exists = self._shown("message_exists", query, hidden)
            if forward:
                older, newer = await connection.fetchval(exists, n, 0, first, place), more
            else:
                older, newer = more, await connection.fetchval(exists, n, last, POSITION_MAX, place)
        return rows, page_text(first) if older else None, page_text(last) if newer else None

    def _shown(self, name: str, query: MessageQuery, hidden: Hidden | None) -> str:
        """A statement over messages, without those of the system where the query leaves them out, and
        without what is hidden.
        """
        shown = "" if query.system else f"AND mark <> {int(Mark.SYSTEM)}"
        parts = ""
        if hidden is not None:
            shown += f" AND coalesce(place, position) < {hidden.below}"
        if hidden is not None and hidden.part is not None:
            parts = f"AND NOT (m.position = {hidden.message} AND p.position >= {hidden.part})"
        return self._sql[name].replace("{shown}", shown).replace("{parts}", parts)

    async def _hidden(self, connection: Connection, session: str, data: bytes) -> Hidden | None:
        """What a revert that is staged in the session hides."""
        point = reverted.point_in(data)
        if point is None:
            return None
        found = await self._records(
            connection, session, "r.id = ANY($2)", [point.messageID, point.partID or ""]
        )
        by_kind = {each.kind: each for each in found}
        return reverted.hidden(by_kind.get("message"), by_kind.get("part"))

    async def _around(self, connection: Connection, query: MessageQuery) -> tuple[int, int]:
        """Positions around the one message that is asked for; around nothing when there is none."""
        found = await self._records(
            connection, query.session, "r.id = $2 AND r.kind = 1", plain(query.only or "")
        )
        return (found[0].position - 1, found[0].position + 1) if found else (0, 0)

    async def _tail(self, connection: Connection, session: str, hidden: Hidden | None) -> int:
        """The place from which the model still sees messages: 0 when nothing was compacted.

        Compactions whose summary is hidden do not count.
        """
        marked = f"r.kind = 1 AND r.mark = {int(Mark.SUMMARY)} AND $2 = ''"
        summaries = await self._records(connection, session, marked, "")
        if hidden is not None:
            summaries = [each for each in summaries if each.place < hidden.below]
        if not summaries:
            return 0
        asked = [_named.decode(summary.data).parentID for summary in summaries]
        parts = await self._records(connection, session, "r.kind = 2 AND p.id = ANY($2)", asked)
        tails = [_named.decode(part.data).tail_start_id for part in parts]
        wanted = [*asked, *(tail for tail in tails if tail)]
        messages = await self._records(connection, session, "r.kind = 1 AND r.id = ANY($2)", wanted)
        by_id = {message.id: message for message in messages}
        return tail_of(
            reversed(summaries),
            by_id.get,
            lambda id: [part for part in parts if part.parent == id],
        )

    async def _records(
        self, connection: Connection, session: str, where: str, value: object
    ) -> list[StoredRecord]:
        rows = await connection.fetch(
            f"{self._sql['record']} WHERE s.id = $1 AND r.data IS NOT NULL AND {where} ORDER BY r.position",
            session,
            value,
        )
        return [stored_record(row) for row in rows]


def _json(session: str, rows: Sequence[Row]) -> Iterator[list[str]]:
    """The JSON of each message, in pieces."""
    head, part_head = f'","sessionID":"{session}",', f'","sessionID":"{session}","messageID":"'
    for _, of_message in groupby(rows, itemgetter("position")):
        pieces: list[str] = []
        for row in of_message:
            if pieces:
                pieces.append(",")
            else:
                pieces = ['{"info":{"id":"', row["id"], head, row["data"][1:], ',"parts":[']
            if row["part"] is not None:
                pieces += ('{"id":"', row["part"], part_head, row["id"], '",', row["part_data"][1:])
        pieces.append("]}")
        yield pieces


def _gathered(session: str, rows: Sequence[Row]) -> list[StoredMessage]:
    messages: list[StoredMessage] = []
    info: StoredRecord | None = None
    parts: list[StoredRecord] = []
    for row in rows:
        if info is None or row["position"] != info.position:
            if info is not None:
                messages.append(StoredMessage(info, tuple(parts)))
                parts = []
            info = _message(session, row)
        if row["part"] is not None:
            parts.append(_part(session, row))
    if info is not None:
        messages.append(StoredMessage(info, tuple(parts)))
    return messages


def _cut(rows: Sequence[Row], limit: int, *, forward: bool) -> tuple[Sequence[Row], bool]:
    """The rows without the one message too many that was read to see whether there are more."""
    positions = sorted({row["position"] for row in rows})
    if len(positions) <= limit:
        return rows, False
    extra = positions[-1] if forward else positions[0]
    return [row for row in rows if row["position"] != extra], True


def _message(session: str, row: Row) -> StoredRecord:
    return StoredRecord(
        session,
        "message",
        row["id"],
        None,
        row["position"],
        row["seq"],
        row["place"] or row["position"],
        Mark(row["mark"]),
        row["data"].encode(),
    )


def _part(session: str, row: Row) -> StoredRecord:
    position = row["part_position"]
    return StoredRecord(
        session,
        "part",
        row["part"],
        row["id"],
        position,
        row["part_seq"],
        row["part_place"] or position,
        Mark(row["part_mark"]),
        row["part_data"].encode(),
    )

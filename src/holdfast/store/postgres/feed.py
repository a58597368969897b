"""The feed, read from the rows: what the transactions after a cursor changed.

A row carries the transaction that last changed it and the one that created it; a cursor is a snapshot, so a
commit that was under way at the cursor is never missed, however late it ends. A batch is delivered in two
stages, tombstones and what lives, each by session number and position: that puts parents before children.
What was created after the batch began is left to the next one, so that no child comes without its parent.
"""

import hashlib

from holdfast.errors import InvalidInput
from holdfast.schema.stored import KINDS, Mark
from holdfast.store.columns import stub
from holdfast.store.postgres.connections import Connection, Connections, Row
from holdfast.store.postgres.cursor import NOTHING, FeedCursor, Snapshot, from_sql, parse_feed
from holdfast.store.postgres.reader import plain, stored_record
from holdfast.store.postgres.sql import statements
from holdfast.store.record import Changed, Changes, Resync, StoredRecord


class Feed:
    """Answers `head` and `changes`."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._sql = statements(schema)

    async def head(self) -> str:
        """The cursor of this moment."""
        async with self._connections.use() as connection:
            snapshot, incarnation, _ = await self._state(connection)
        return FeedCursor(incarnation, snapshot).text()

    async def _state(self, connection: Connection) -> tuple[Snapshot, str, int]:
        snapshot, history, own, horizon = await connection.fetchrow(self._sql["head"])
        incarnation = hashlib.sha256(f"{own}/{history}".encode()).hexdigest()[:16]
        return from_sql(snapshot), incarnation, int(horizon)

    async def changes(self, cursor: str | None, session: str | None, limit: int) -> Changes | Resync:
        """See the port."""
        async with (
            self._connections.use() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            now, incarnation, horizon = await self._state(connection)
            start = FeedCursor(incarnation, NOTHING) if cursor is None else parse_feed(cursor)
            if start is None or start.incarnation != incarnation:
                return Resync("the cursor belongs to another store, or to this one before it was restored")
            if max(start.after.xmax, start.until.xmax if start.until else 0) > now.xmax:
                return Resync("the cursor is ahead of the store")
            if start.after.xmin <= horizon and start.after != NOTHING:
                return Resync("the cursor is older than what the store remembers of removals")
            if start.until is None:
                start = FeedCursor(incarnation, start.after, now)
            if start.after == start.until:
                return Changes((), FeedCursor(incarnation, now).text(), complete=True)
            try:
                name = None if session is None else plain(session)
            except InvalidInput:
                name = ""
            return await self._page(connection, start, name, max(1, limit))

    async def _page(
        self, connection: Connection, start: FeedCursor, session: str | None, limit: int
    ) -> Changes:
        assert start.until is not None
        found: list[Changed] = []
        stage, key = start.stage, (start.session, start.position)
        if stage == 0 and start.after != NOTHING:
            rows = await self._rows(connection, "gone", start, key=key, session=session, limit=limit + 1)
            found = [Changed(_tombstone(row), created=False, removed=True) for row in rows[:limit]]
            if len(rows) > limit:
                return _unfinished(start, 0, rows[limit - 1], found)
        if stage == 0:
            key = (0, -1)
        name = "everything" if start.after == NOTHING else "changed"
        room = limit - len(found)
        rows = await self._rows(connection, name, start, key=key, session=session, limit=room + 1)
        found += [Changed(stored_record(row), created=row["created"], removed=False) for row in rows[:room]]
        if len(rows) > room:
            if room == 0:
                return Changes(
                    tuple(found),
                    FeedCursor(start.incarnation, start.after, start.until, 1, 0, 0).text(),
                    complete=False,
                )
            return _unfinished(start, 1, rows[room - 1], found)
        return Changes(tuple(found), FeedCursor(start.incarnation, start.until).text(), complete=True)

    async def _rows(
        self,
        connection: Connection,
        name: str,
        start: FeedCursor,
        *,
        key: tuple[int, int],
        session: str | None,
        limit: int,
    ) -> list[Row]:
        assert start.until is not None
        values: list[object] = [start.after.sql(), *key, limit]
        if name != "gone":
            values.append(start.until.sql())
        statement = self._sql[name].replace("{rows}", self._sql["rows"])
        if session is None:
            statement = statement.replace("{session}", "").replace("{of_session}", "")
        else:
            values.append(session)
            statement = statement.replace("{session}", f"AND s.id = ${len(values)}")
            statement = statement.replace("{of_session}", self._sql["of_session"])
        return list(await connection.fetch(statement, *values))


def _unfinished(start: FeedCursor, stage: int, last: Row, found: list[Changed]) -> Changes:
    cursor = FeedCursor(start.incarnation, start.after, start.until, stage, last["n"], last["at_position"])
    return Changes(tuple(found), cursor.text(), complete=False)


def _tombstone(row: Row) -> StoredRecord:
    kind = KINDS[row["kind"]]
    data = stub(row["project"], row["directory"], row["at"]) if kind == "session" else b""
    position = row["position"]
    return StoredRecord(
        row["session"], kind, row["id"], row["parent"], position, row["seq"], position, Mark.NONE, data
    )

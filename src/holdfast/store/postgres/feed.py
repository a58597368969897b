"""The feed, read from the rows: what the transactions after a cursor changed.

A row carries the transaction that last changed it and the one that created it; a cursor is a snapshot, so a
commit that was under way at the cursor is never missed, however late it ends. A batch is delivered in two
stages, tombstones and what lives, each by session number and position: that puts parents before children.
What was created after the batch began is left to the next one, so that no child comes without its parent.

A cursor names no transaction behind the newest that changed a row. Those of renewals and of refused commits
are on the disk only some time after they are over: after a crash the server gives their numbers out again,
and a cursor that named them as seen would miss what is changed under them.
"""

import hashlib

from holdfast.errors import InvalidInput
from holdfast.schema.stored import KINDS, Mark
from holdfast.store.columns import stub
from holdfast.store.postgres.connections import Connection, Connections, Row
from holdfast.store.postgres.cursor import NOTHING, FeedCursor, Snapshot, from_sql, parse_feed
from holdfast.store.postgres.reader import plain, stored_record
from holdfast.store.postgres.sql import statements
from holdfast.store.postgres.walk import START, WINDOW, Key, Walks
from holdfast.store.record import Changed, Changes, Resync, StoredRecord


class Feed:
    """Answers `head` and `changes`."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._sql = statements(schema)
        self._walks = Walks()

    async def head(self) -> str:
        """The cursor of this moment."""
        async with self._connections.use() as connection:
            now, incarnation, _, newest = await self._state(connection)
        return FeedCursor(incarnation, now.upto(newest)).text()

    async def _state(self, connection: Connection) -> tuple[Snapshot, str, int, int]:
        """Now, the store's incarnation, its horizon, and the newest transaction that changed a row."""
        snapshot, history, place, own, horizon, newest = await connection.fetchrow(self._sql["head"])
        incarnation = hashlib.sha256(f"{own}/{history}/{place}".encode()).hexdigest()[:16]
        return from_sql(snapshot), incarnation, int(horizon), int(newest)

    async def changes(self, cursor: str | None, session: str | None, limit: int) -> Changes | Resync:
        """See the port."""
        async with (
            self._connections.use() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            now, incarnation, horizon, newest = await self._state(connection)
            start = FeedCursor(incarnation, NOTHING) if cursor is None else parse_feed(cursor)
            if start is None or start.incarnation != incarnation:
                return Resync("the cursor belongs to another store, or to this one before it was restored")
            if max(start.after.xmax, start.until.xmax if start.until else 0) > now.xmax:
                return Resync("the cursor is ahead of the store")
            if start.after.xmin <= horizon and start.after != NOTHING:
                return Resync("the cursor is older than what the store remembers of removals")
            # A row may carry a lower number than before: the longer of two commits had begun earlier.
            now = now.upto(max(newest, start.after.xmax - 1))
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
        if stage == 0 and start.after == NOTHING:
            stage = 1
        while True:
            look = _Look(self._sql, start.after, start.until, stage, session)
            rows, last = await self._rows(connection, look, key, limit - len(found))
            found += [_changed(row, stage, begun=start.after != NOTHING) for row in rows]
            if last is None and stage == 1:
                return Changes(tuple(found), FeedCursor(start.incarnation, start.until).text(), complete=True)
            if last is None:
                stage, key = 1, START
            elif found:
                cursor = FeedCursor(start.incarnation, start.after, start.until, stage, *last)
                return Changes(tuple(found), cursor.text(), complete=False)
            else:  # All of them were changed again since they were found: the next batch has them.
                key = last

    async def _rows(
        self, connection: Connection, look: "_Look", key: Key, room: int
    ) -> tuple[list[Row], Key | None]:
        """The next rows of a stage, and the key of the last when there are more.

        The changes after a cursor are found by their transactions, which is no order that a page could go on
        in. So the first page takes what it needs, and if that is not all, the second finds the keys of
        everything that is left and later pages go along these. They are remembered here only: a cursor that
        comes back elsewhere, or late, costs another look.
        """
        if look.after == NOTHING or key == START:
            values = (*look.values(key, room + 1), *look.of)
            rows = list(await connection.fetch(look.statement(look.where, look.rows), *values))
            if len(rows) <= room:
                return rows, None
            return rows[:room], (rows[room - 1]["n"], rows[room - 1]["at_position"]) if room else key
        keys = self._walks.get(look.name, key, room)
        if keys is None:
            values = (*look.values(key, max(WINDOW, room + 1)), *look.of)
            found = await connection.fetchrow(look.statement(look.where, "keys"), *values)
            keys = self._walks.remember(look.name, key, *found)
        sessions, positions, more = keys.after(key, room)
        statement = look.statement("known", look.rows)
        rows = list(await connection.fetch(statement, look.after.sql(), sessions, positions))
        if not more:
            self._walks.forget(look.name)
            return rows, None
        return rows, (sessions[-1], positions[-1])


class _Look:
    """What is looked for in one stage of a batch, and in which words."""

    def __init__(
        self, sql: dict[str, str], after: Snapshot, until: Snapshot, stage: int, session: str | None
    ) -> None:
        self.after = after
        self.name = (after, until, stage, session)
        self.of = () if session is None else (session,)
        self.where = ("gone", "everything" if after == NOTHING else "changed")[stage]
        self.rows = ("gone_rows", "rows")[stage]
        self._sql = sql
        self._until = until

    def values(self, key: Key, limit: int) -> tuple[object, ...]:
        return (self.after.sql(), *key, limit, self._until.sql())

    def statement(self, where: str, what: str) -> str:
        pieces = [where, "page", what] if where in ("gone", "changed") else [where, what]
        text = "\n".join(self._sql[piece] for piece in pieces)
        # Mostly nothing was under way at the cursor, and the statement is planned for each look.
        text = text.replace("{under_way}", self._sql.get(f"{where}_under_way", "") if self.after.xip else "")
        of_session, session = (self._sql["of_session"], "AND s.id = $6") if self.of else ("", "")
        return text.replace("{of_session}", of_session).replace("{session}", session)


def _changed(row: Row, stage: int, *, begun: bool) -> Changed:
    if stage == 0:
        return Changed(_tombstone(row), created=False, removed=True)
    created = row["created"]
    again = created and row["again"] and begun  # A follower from the beginning knew of no former life.
    return Changed(stored_record(row), created=created, removed=False, again=again)


def _tombstone(row: Row) -> StoredRecord:
    kind = KINDS[row["kind"]]
    data = stub(row["project"], row["directory"], row["at"]) if kind == "session" else b""
    position = row["position"]
    return StoredRecord(
        row["session"], kind, row["id"], row["parent"], position, row["seq"], position, Mark.NONE, data
    )

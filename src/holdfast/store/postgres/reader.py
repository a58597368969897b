"""Reads sessions and single records. Stored JSON is handed on as it is."""

from collections.abc import Sequence

from holdfast.errors import InvalidInput
from holdfast.schema.stored import KINDS, Kind, Mark
from holdfast.store.check import check_int
from holdfast.store.cursor import list_text, parse_list
from holdfast.store.postgres.arguments import SHARE, kind_number
from holdfast.store.postgres.connections import Connections, Row
from holdfast.store.postgres.leases import Leases
from holdfast.store.postgres.sql import statements
from holdfast.store.query import SessionQuery, check_limit
from holdfast.store.record import SessionPage, SessionRecord, StoredRecord


class Reader:
    """Sessions and records."""

    def __init__(self, connections: Connections, schema: str, leases: Leases) -> None:
        self._connections = connections
        self._sql = statements(schema)
        self._leases = leases

    async def session(self, id: str) -> SessionRecord | None:
        """The session, if it exists."""
        async with self._connections.use() as connection:
            row = await connection.fetchrow(self._sql["session"], plain(id), self._leases.now_ms())
        return None if row is None else self._session(row)

    def _session(self, row: Row) -> SessionRecord:
        return SessionRecord(
            id=row["id"],
            position=row["position"],
            seq=row["seq"],
            head=row["head"],
            top=row["top"],
            owner=self._leases.living(row["owner"], row["owner_data"]),
            data=row["data"].encode(),
            claim=row["fence"],
        )

    async def sessions(self, query: SessionQuery) -> SessionPage:
        """A page of sessions, the last updated first."""
        limit = check_limit(query.limit)
        where, values = _filter(query)
        statement = self._sql["sessions"] + "".join(
            f" AND {clause.format(f'${number}')}" for number, clause in enumerate(where, 2)
        )
        statement += f" ORDER BY s.updated DESC, s.n DESC LIMIT {limit + 1}"
        async with self._connections.use() as connection:
            rows = await connection.fetch(statement, self._leases.now_ms(), *values)
        last = rows[limit - 1] if len(rows) > limit else None
        return SessionPage(
            tuple(self._session(row) for row in rows[:limit]),
            None if last is None else list_text(last["updated"], last["n"]),
        )

    async def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        """One record."""
        number = kind_number(kind)
        if kind == "session":
            found = await self.session(id) if session == id else None
            return None if found is None else found.record()
        async with self._connections.use() as connection:
            row = await connection.fetchrow(
                self._sql["record"] + " WHERE s.id = $1 AND r.id = $2 AND r.kind = $3 AND r.data IS NOT NULL",
                plain(session),
                plain(id),
                number,
            )
        return None if row is None else stored_record(row)

    async def select(self, kind: Kind, session: str | None, mark: Mark | None) -> Sequence[StoredRecord]:
        """Every record of a kind."""
        number = kind_number(kind)
        if session is None and mark is not Mark.OPEN and number <= SHARE:
            raise InvalidInput(f"name the session whose {kind} records you want")
        statement = self._sql["record"] + f" WHERE r.kind = {number} AND r.data IS NOT NULL"
        if mark is not None:
            statement += f" AND r.mark = {int(mark)}"
        values = [] if session is None else [plain(session)]
        statement += " AND s.id = $1" if values else ""
        async with self._connections.use() as connection:
            rows = await connection.fetch(statement + " ORDER BY r.session, r.position", *values)
        return [stored_record(row) for row in rows]

    async def holders(self, kind: Kind, id: str) -> Sequence[str]:
        """The sessions that have a record of this kind and id."""
        async with self._connections.use() as connection:
            rows = await connection.fetch(self._sql["holders"], plain(id), kind_number(kind))
        return [row["id"] for row in rows]


def stored_record(row: Row) -> StoredRecord:
    """A record from the columns of the `record` statement."""
    data = row["data"]
    return StoredRecord(
        session=row["session"],
        kind=KINDS[row["kind"]],
        id=row["id"],
        parent=row["parent"],
        position=row["position"],
        seq=row["seq"],
        place=row["place"] or row["position"],
        mark=Mark(row["mark"]),
        data=data.encode() if data is not None else b"",
    )


def plain(text: str) -> str:
    """The text, if the server can be asked about it at all."""
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidInput(f"{text[:40]!a} holds characters that no record can have")
    return text


def _filter(query: SessionQuery) -> tuple[list[str], list[object]]:
    """Clauses with a place for their value, and the values."""
    where: list[str] = []
    values: list[object] = []

    def add(clause: str, value: object) -> None:
        where.append(clause)
        values.append(plain(value) if isinstance(value, str) else value)

    if query.project is not None:
        add("s.project = {}", query.project)
    if query.directory is not None:
        add("s.directory = {}", query.directory)
    if query.path is not None and query.path.strip("/"):
        add("(s.path = {0} OR starts_with(s.path, {0} || '/'))", query.path.strip("/"))
    if query.roots:
        add("(s.parent IS NULL) = {}::boolean", True)  # noqa: FBT003 - a value for the server
    if query.parent is not None:
        add("s.parent = {}", query.parent)
    if query.archived is not None:
        add("(s.archived IS NOT NULL) = {}::boolean", query.archived)
    if query.agent_runs is not None:
        add("(s.agent_run IS NOT NULL) = {}::boolean", query.agent_runs)
    if query.updated_from is not None:
        add("s.updated >= {}", check_int(query.updated_from))
    if query.updated_to is not None:
        add("s.updated <= {}", check_int(query.updated_to))
    if query.title is not None:
        add("strpos(s.folded, {}) > 0", query.title.casefold())
    if query.id_prefix is not None:
        add("starts_with(s.id, {})", query.id_prefix)
    if query.slug is not None:
        add("s.slug = {}", query.slug)
    if query.cursor is not None:
        updated, number = parse_list(query.cursor)
        add("s.updated <= {}", updated)
        add(f"(s.updated < {updated} OR s.n < {{}})", number)
    return where, values

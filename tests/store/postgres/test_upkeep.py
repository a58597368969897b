"""A store among releases, roles, standbys and damage: what is refused, in which words, and what goes on."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import asyncpg
import pytest

from holdfast.errors import StoreBusy, StoreError, StoreTooNew
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Held
from holdfast.store.postgres import connections, examine
from holdfast.store.postgres.prepare import FUNCTION_SCRIPTS
from holdfast.store.postgres.sql import FUNCTIONS, script
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import SearchQuery, SessionQuery
from holdfast.store.report import Finding
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session, text, user
from holdfast.testing.store_contract.world import granted
from tests.store.postgres.server import schema_url
from tests.until import until

pytestmark = pytest.mark.ci("most of the work is done by a database server")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path), host=FakeHost())
    await store.commit(Batch((session(), user(1))))
    yield store
    await store.close()


@pytest.fixture
async def other(store: PostgresStore) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(store.address.dsn)
    await connection.execute(f"SET search_path = {store.address.schema}, public")
    yield connection
    await connection.close()


async def test_a_process_stops_writing_when_the_format_rises(
    store: PostgresStore, other: asyncpg.Connection
) -> None:
    """A later release changed the store under its feet: reads go on, every write is refused by name."""
    await store.register(FakeHost().owner("o1"))
    await other.execute("UPDATE store SET value = '2' WHERE key = 'format'")

    for write in (
        store.commit(Batch((user(2),))),
        store.claim(S1, "o1"),
        store.erase(S1),
        store.sweep(),
        store.register(FakeHost().owner("o2")),
    ):
        with pytest.raises(StoreTooNew):
            await write
    async with anyio.create_task_group() as group:
        for n in range(2, 6):
            group.start_soon(_refused, store, n)
    assert (await store.session(S1)) is not None


async def _refused(store: PostgresStore, n: int) -> None:
    with pytest.raises(StoreTooNew):
        await store.commit(Batch((user(n),)))


async def test_functions_of_other_releases_are_left_alone(
    store: PostgresStore, other: asyncpg.Connection, tmp_path: Path
) -> None:
    """Each version has functions of its own: opening with one changes nothing for processes of another."""
    await other.execute("CREATE FUNCTION v999_history() RETURNS text LANGUAGE sql AS $$ SELECT 'later' $$")
    await other.execute("INSERT INTO store VALUES ('functions_999', 'mark')")
    await other.execute(
        "UPDATE store SET value = 'old' WHERE key LIKE 'functions_%' AND key <> 'functions_999'"
    )

    await (await PostgresStore.open(schema_url(tmp_path))).close()

    assert await other.fetchval("SELECT v999_history()") == "later"
    assert await other.fetchval("SELECT value FROM store WHERE key = 'functions_999'") == "mark"
    assert await other.fetchval("SELECT value FROM store WHERE key = $1", f"functions_{FUNCTIONS}") != "old"


def test_the_version_of_the_functions_rises_with_their_text() -> None:
    """Raise FUNCTIONS when a released text changes; then note the new text here."""
    import hashlib

    whole = "".join(script(name, "s") for name in FUNCTION_SCRIPTS)

    assert (FUNCTIONS, hashlib.sha256(whole.encode()).hexdigest()[:16]) == (1, "32c94638ebd7a1fa")


async def test_text_that_is_still_written_has_no_words(
    store: PostgresStore, other: asyncpg.Connection
) -> None:
    """They are indexed when the part closes, and found from then on."""
    from msgspec.structs import replace

    closed = text(101, 1, "rhubarb")
    for _ in range(2):
        await store.commit(Batch((replace(closed, mark=Mark.OPEN),)))
        assert await other.fetchval("SELECT count(*) FROM record WHERE words IS NOT NULL") == 0
        assert (await store.search(SearchQuery("rhubarb"))).hits == ()
    await store.commit(Batch((closed,)))

    assert [hit.part for hit in await store.search(SearchQuery("rhubarb"))] == [closed.id]


async def test_an_owner_that_cannot_be_read_stops_nobody(
    store: PostgresStore, other: asyncpg.Connection
) -> None:
    """It keeps what it claimed, others claim and bury; doctor says so, and mends it when it is late."""
    host = FakeHost()
    await store.register(host.owner("o1"))
    await store.register(host.owner("o2"))
    granted(await store.claim(S1, "o1"))
    await other.execute("UPDATE owner SET data = '{broken' WHERE id = 'o1'")

    assert await store.claim(S1, "o2") == Held(S1, "o1")
    assert list(await store.bury("o2")) == []
    record = await store.session(S1)
    assert record is not None
    assert record.owner == "o1"
    unread = Finding("its row cannot be read", "owner o1", mended=False)
    assert (await store.examine()).findings == (unread,)
    assert (await store.examine(repair=True)).findings == (unread,), "it may be alive"
    await other.execute("UPDATE owner SET deadline = 0 WHERE id = 'o1'")
    assert [each.mended for each in (await store.examine(repair=True)).findings] == [True]
    assert (await store.examine()).findings == ()
    granted(await store.claim(S1, "o2"))


async def test_a_transaction_that_stays_open_is_named(
    store: PostgresStore, other: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look for changes reads what came since it began: the examination advises to end it."""
    monkeypatch.setattr(examine, "BEHIND_MAX", 3)
    async with other.transaction():
        await other.execute("SELECT pg_current_xact_id()")
        for n in range(2, 8):
            await store.commit(Batch((user(n),)))

        async def is_named() -> bool:
            named = f"process {other.get_server_pid()} in postgres"
            return any(named in line for line in (await store.examine()).advice)

        await until(is_named)  # The server's own upkeep may have begun before it, and ends soon.


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE store SET value = 'x' WHERE key = 'format'", "a number is none"),
        ("DELETE FROM store WHERE key = 'incarnation'", "incarnation"),
        ("DELETE FROM store WHERE key = 'horizon'", "horizon"),
    ],
)
async def test_a_damaged_store_table_is_named(
    store: PostgresStore, other: asyncpg.Connection, tmp_path: Path, sql: str, words: str
) -> None:
    """Not an error of Python's, but what is wrong and what to do."""
    await other.execute(sql)

    with pytest.raises(StoreError, match=f"`store` is damaged .{words}"):
        await PostgresStore.open(schema_url(tmp_path))


async def test_a_database_that_cannot_hold_every_character_is_refused(
    other: asyncpg.Connection, tmp_path: Path
) -> None:
    """It would take most records and refuse single ones later."""
    name = f"latin_{abs(hash(str(tmp_path)))}"
    await other.execute(
        f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    try:
        with pytest.raises(StoreError, match="LATIN1"):
            await PostgresStore.open(schema_url(tmp_path).replace("/postgres?", f"/{name}?"))
    finally:
        await other.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_who_may_only_read_can_read(
    store: PostgresStore, other: asyncpg.Connection, tmp_path: Path
) -> None:
    """Lists, sessions, the feed and an examination, for a role that may not write; commits are refused."""
    role, schema = f"reader_{store.address.schema[-8:]}", store.address.schema
    await other.execute(
        f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
    )
    try:
        reading = await PostgresStore.open(schema_url(tmp_path).replace("postgres:@", f"{role}:@"))
        await reading.sweep()
        assert [each.id for each in (await reading.sessions(SessionQuery())).sessions] == [S1]
        assert (await reading.examine()).findings == ()
        await reading.head()
        with pytest.raises(StoreError):
            await reading.commit(Batch((user(2),)))
        await reading.close()
    finally:
        await other.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_database_that_is_read_only_by_default_can_be_read(
    store: PostgresStore, other: asyncpg.Connection, tmp_path: Path
) -> None:
    """It is opened, swept and read without an error; a commit is refused in words that fit."""
    role = f"still_{store.address.schema[-8:]}"
    await other.execute(
        f"CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET default_transaction_read_only = on"
    )
    try:
        reading = await PostgresStore.open(schema_url(tmp_path).replace("postgres:@", f"{role}:@"))
        await reading.sweep()
        assert (await reading.session(S1)) is not None
        assert (await reading.examine()).findings == ()
        with pytest.raises(StoreBusy, match="only lets itself be read"):
            await reading.commit(Batch((user(2),)))
        await reading.close()
    finally:
        await other.execute(f"DROP ROLE {role}")


async def test_a_server_without_room_is_asked_through_the_connection_that_we_have(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second read at once waits for the first, in the place of failing."""
    await store.session(S1)

    async def full(*_: object, **__: object) -> None:
        raise connections.NoRoom("full")

    monkeypatch.setattr(connections, "connect", full)
    found: list[object] = []

    async def read() -> None:
        found.append(await store.session(S1))

    async with anyio.create_task_group() as group, store._reads.use():
        group.start_soon(read)
        await anyio.sleep(0.05)
        assert found == []
    assert len(found) == 1

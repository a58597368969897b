"""The feed's cursor on PostgreSQL: snapshots, histories and the bounds of what is remembered."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from holdfast.store.batch import Batch, Remove
from holdfast.store.postgres.arguments import arguments, draft
from holdfast.store.postgres.cursor import FeedCursor, Snapshot, from_sql, parse_feed
from holdfast.store.postgres.sql import PREFIX, statements
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.record import Resync
from holdfast.testing.store_contract import Replica
from holdfast.testing.store_contract.build import S1, S2, msg, session, text, user
from holdfast.testing.store_contract.replica import contents
from holdfast.testing.store_contract.world import drain
from tests.store.postgres.server import schema_url

pytestmark = pytest.mark.ci("most of the work is done by a database server")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path))
    await store.commit(Batch((session(), session(S2))))
    yield store
    await store.close()


@pytest.fixture
async def other(store: PostgresStore) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(store.address.dsn)
    yield connection
    await connection.close()


async def call_commit(connection: asyncpg.Connection, schema: str, batch: Batch) -> None:
    """A commit within somebody's transaction, which may go on for long after."""
    await connection.fetchval(statements(schema)["commit_one"], *arguments([draft(batch)], [], None))


async def test_a_slow_commit_is_not_missed(store: PostgresStore, other: asyncpg.Connection) -> None:
    """A transaction that began before the cursor and ended after it is told; a sequence would lose it."""
    transaction = other.transaction()
    await transaction.start()
    await call_commit(other, store.address.schema, Batch((user(1), text(2, 1))))
    await store.commit(Batch((user(3, session=S2),)))
    cursor = await store.head()
    await store.commit(Batch((user(4, session=S2),)))
    early = await drain(store, cursor)
    assert [each.record.id for each in early.records] == [msg(4)]

    await transaction.commit()

    late = await drain(store, early.cursor)
    assert [each.record.id for each in late.records] == [msg(1), text(2, 1).id]
    assert [each.created for each in late.records] == [True, True]
    assert {each.record.id for each in (await drain(store, cursor)).records} == {
        msg(1),
        text(2, 1).id,
        msg(4),
    }


async def test_a_child_never_overtakes_a_slow_parent(store: PostgresStore, other: asyncpg.Connection) -> None:
    """A session whose commit ends between two pages, with a child already made, comes with it or after it."""
    from holdfast.testing.store_contract.build import ses

    parent, child = ses(50), ses(60)
    for n in range(1, 6):
        await store.commit(Batch((user(n),)))
    transaction = other.transaction()
    await transaction.start()
    await call_commit(other, store.address.schema, Batch((session(parent),)))
    await store.commit(Batch((session(ses(55)), user(1, session=ses(55)))))
    replica = Replica()
    pages = 0
    while replica.cursor is None or (ses(55), "session", ses(55)) not in replica.records:
        await replica.follow(store, limit=1)
        pages += 1
    await transaction.commit()
    await store.commit(Batch((session(child, parent=parent),)))
    page = await store.changes(replica.cursor, limit=1000)
    assert not isinstance(page, Resync)

    assert child not in {each.record.id for each in page.records}, "its parent was passed by"
    replica.apply(page)
    await replica.catch_up(store)
    assert replica.records == await contents(store)


async def test_an_undone_commit_is_never_told(store: PostgresStore, other: asyncpg.Connection) -> None:
    """What was rolled back leaves no trace, though its number is used up."""
    cursor = await store.head()
    transaction = other.transaction()
    await transaction.start()
    await call_commit(other, store.address.schema, Batch((user(1),)))
    await transaction.rollback()

    assert (await drain(store, cursor)).records == ()


async def test_another_history_means_begin_again(store: PostgresStore, other: asyncpg.Connection) -> None:
    """A promoted standby gives numbers out again: its timeline makes every old cursor worthless."""
    cursor = await store.head()
    history = await other.fetchval(f"SELECT {store.address.schema}.{PREFIX}history()")
    system, timeline = history.split("/")
    assert system == str(await other.fetchval("SELECT system_identifier FROM pg_control_system()"))
    assert timeline == "00000001"

    await other.execute(
        f"CREATE OR REPLACE FUNCTION {store.address.schema}.{PREFIX}history() RETURNS text LANGUAGE sql "
        f"AS $$ SELECT '{system}/00000002' $$"
    )

    assert isinstance(await store.changes(cursor), Resync)
    assert not isinstance(await store.changes(await store.head()), Resync)


async def test_a_user_without_rights_still_has_a_history(
    store: PostgresStore, other: asyncpg.Connection
) -> None:
    """Where the server tells nothing about itself the store's own incarnation stands alone, and says so."""
    name, schema = f"plain_{store.address.schema[-8:]}", store.address.schema
    await other.execute(f"CREATE ROLE {name}; GRANT USAGE ON SCHEMA {schema} TO {name}")
    try:
        async with other.transaction():
            await other.execute(
                "REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn) FROM PUBLIC; "
                f"SET LOCAL ROLE {name}"
            )
            assert await other.fetchval(f"SELECT {schema}.{PREFIX}history()") == "unknown/unknown"
            await other.execute("RESET ROLE")
            await other.execute(
                "GRANT EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn) TO PUBLIC"
            )
    finally:
        await other.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def test_a_removal_is_remembered_for_who_has_not_seen_it(store: PostgresStore) -> None:
    """A cursor whose own moment saw the removal survives a sweep; one from before it does not."""
    await store.commit(Batch((user(1),)))
    before = await store.head()
    await store.commit(Batch((Remove(S1, "message", msg(1)),)))
    after = await store.head()
    async with store._writes.use() as connection:
        await connection.execute(f"SELECT {store.address.schema}.{PREFIX}sweep(-1000, NULL)")

    assert isinstance(await store.changes(before), Resync)
    assert (await drain(store, after)).records == ()


def test_a_cursor_is_its_text() -> None:
    """Parsing what was written gives the same cursor, in the middle of a batch too."""
    after, until = Snapshot(700, 712, (703, 711)), Snapshot(720, 720)
    for cursor in (
        FeedCursor("0123456789abcdef", after),
        FeedCursor("0123456789abcdef", after, until, 1, 17, 2**40),
    ):
        assert parse_feed(cursor.text()) == cursor
    assert from_sql(after.sql()) == after


@pytest.mark.parametrize(
    "text",
    [
        "0123456789abcdef-0.0.",
        "0123456789abcdef-5.4.",
        "0123456789abcdef-5.9.9",
        "0123456789abcdef-5.9.7,6",
        "0123456789abcdef-5.9.6,6",
        "0123456789abcdef-5.9",
        "0123456789abcdef-5.9.-5.9.-2-0-0",
        "0123456789abcdef-ffffffffffffffff.ffffffffffffffff.",
    ],
)
def test_a_snapshot_that_cannot_be_is_no_cursor(text: str) -> None:
    """What the server would choke on is not sent to it."""
    assert parse_feed(text) is None

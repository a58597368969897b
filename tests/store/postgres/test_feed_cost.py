"""What the pages of a large batch cost: one walk over the changes, not one a page."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from holdfast.store.batch import Batch, Remove
from holdfast.store.postgres import walk
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.record import Changes
from holdfast.testing.store_contract import Replica
from holdfast.testing.store_contract.build import S1, S2, msg, prt, session, text, user
from holdfast.testing.store_contract.replica import contents
from holdfast.testing.store_contract.world import drain
from tests.store.postgres.server import schema_url

pytestmark = pytest.mark.ci("most of the work is done by a database server")

PARTS = 3000
PAGE = 50


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path))
    await store.commit(Batch((session(), user(1), session(S2), user(1, session=S2))))
    yield store
    await store.close()


async def rows_read(store: PostgresStore) -> int:
    """How many rows of records the server has read for this store, by any plan."""
    for connection in store._reads._idle:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    other = await asyncpg.connect(store.address.dsn)
    read = await other.fetchval(
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables "
        "WHERE schemaname = $1 AND relname = 'record'",
        store.address.schema,
    )
    await other.close()
    return int(read)


async def change_much(store: PostgresStore, *, gone: bool) -> str:
    parts = tuple(text(n, 1) for n in range(10, 10 + PARTS))
    cursor = await store.head()
    await store.commit(Batch(parts))
    if gone:
        cursor = await store.head()
        await store.commit(Batch(tuple(Remove(S1, "part", each.id) for each in parts)))
    return cursor


@pytest.mark.parametrize("gone", [False, True], ids=["changes", "removals"])
@pytest.mark.parametrize("session", [None, S1], ids=["of the store", "of a session"])
async def test_a_large_batch_is_one_walk(store: PostgresStore, gone: bool, session: str | None) -> None:
    """Sixty pages read each changed row a few times, not sixty times."""
    cursor = await change_much(store, gone=gone)
    async with store._reads.use() as connection:
        # As in a store that is too large to be read whole for a page.
        await connection.execute(
            "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"
        )
    before = await rows_read(store)
    found = await drain(store, cursor, session, limit=PAGE)
    read = await rows_read(store) - before

    assert [each.record.id for each in found.records] == [prt(n) for n in range(10, 10 + PARTS)]
    assert read < 12 * PARTS


@pytest.mark.parametrize("gone", [False, True], ids=["changes", "removals"])
@pytest.mark.parametrize("session", [None, S1], ids=["of the store", "of a session"])
async def test_a_transaction_that_stays_open_makes_no_look_longer(
    store: PostgresStore, gone: bool, session: str | None
) -> None:
    """In whatever database of the server: what was seen since it began is not read again. What it writes
    itself is told when it ends, however late.
    """
    other = await asyncpg.connect(store.address.dsn)
    late = other.transaction()
    await late.start()
    await other.execute("SELECT pg_current_xact_id()")
    await change_much(store, gone=gone)
    async with store._reads.use() as connection:
        # As a server does by itself, in time.
        await connection.execute(f"SET enable_seqscan = off; ANALYZE {store.address.schema}.record")
    cursor = await store.head()
    await store.commit(Batch((text(10, 1, "anew"),)))
    before = await rows_read(store)
    found = await store.changes(cursor, session)
    read = await rows_read(store) - before
    changed = "UPDATE {}.record SET xid = pg_current_xact_id() WHERE id = $1"
    await other.execute(changed.format(store.address.schema), prt(10))
    await late.commit()
    await other.close()

    assert isinstance(found, Changes)
    assert [each.record.id for each in found.records] == [prt(10)]
    assert read < 50
    assert [each.record.id for each in (await drain(store, found.cursor)).records] == [prt(10)]


@pytest.mark.parametrize("gone", [False, True], ids=["changes", "removals"])
async def test_every_page_can_be_had_again_and_elsewhere(
    store: PostgresStore,
    tmp_path: Path,
    gone: bool,
) -> None:
    """What is remembered between pages is no part of the cursor: old ones and other processes do without."""
    other = await PostgresStore.open(schema_url(tmp_path))
    cursor = await change_much(store, gone=gone)
    pages: list[tuple[str, Changes]] = []
    complete = False
    while not complete:
        page = await store.changes(cursor, limit=400)
        assert isinstance(page, Changes)
        pages.append((cursor, page))
        cursor, complete = page.cursor, page.complete

    for at, page in reversed(pages[:-1]):
        for reader in (store, other):
            again = await reader.changes(at, limit=400)
            assert isinstance(again, Changes)
            # A batch begins at the moment of its first page, which is another one each time.
            assert (again.records, again.complete) == (page.records, page.complete)
    await other.close()


async def test_a_batch_beyond_the_window_is_whole(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than a window of keys is remembered; then it is looked for again."""
    for module in ("walk", "feed"):
        monkeypatch.setattr(f"holdfast.store.postgres.{module}.WINDOW", 700)
    cursor = await change_much(store, gone=False)

    for limit in (100, 350, 699, 700, 701, 5000):
        found = await drain(store, cursor, limit=limit)
        assert [each.record.id for each in found.records] == [prt(n) for n in range(10, 10 + PARTS)]


async def test_what_changes_between_pages_is_told_in_the_end(store: PostgresStore) -> None:
    """Rows that were found and are then removed, replaced or made anew: the follower ends equal."""
    replica = Replica()
    await replica.catch_up(store)
    await change_much(store, gone=False)
    for _ in range(3):
        await replica.follow(store, limit=100)
    removed = tuple(Remove(S1, "part", prt(n)) for n in range(300, 1500))
    await store.commit(Batch((*removed, text(2000, 1, "anew"), text(400, 1, "again"))))
    await store.commit(Batch((user(2, session=S2), Remove(S2, "message", msg(1)))))
    for _ in range(3):
        await replica.follow(store, limit=100)
    await store.erase(S1)
    for _ in range(2):  # The batch that is under way, and what came after it began.
        await replica.catch_up(store, limit=100)

    assert replica.records == await contents(store)


def test_only_a_few_walks_are_remembered() -> None:
    """Followers that went away leave nothing behind for long."""
    walks = walk.Walks()
    for name in range(100):
        walks.remember(name, (1, 0), [1, 1], [5, 6])

    assert [name for name in range(100) if walks.get(name, (1, 0), 1)] == list(range(100 - walk.WALKS, 100))
    assert walks.get(99, (0, 5), 1) is None

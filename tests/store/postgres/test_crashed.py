"""A server that crashed gives numbers of transactions out again: those that were not on its disk yet."""

from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import asyncpg
import pytest

from holdfast.errors import StoreBusy
from holdfast.store.batch import Batch
from holdfast.store.postgres.store import PostgresStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract import Replica
from holdfast.testing.store_contract.build import S1, S2, session, user
from holdfast.testing.store_contract.replica import contents
from tests.store.postgres.server import begin, restart

pytestmark = pytest.mark.ci("most of the work is done by a database server")


@pytest.fixture
def server() -> Iterator[Any]:
    made = begin()
    yield made
    made.cleanup()


async def test_a_follower_misses_nothing_that_was_written_after_a_crash(server: Any) -> None:
    """It has seen the end of transactions that changed nothing: renewals, and a commit that was refused."""
    control = await asyncpg.connect(server.get_uri())
    await control.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")  # What is not synced waits for long.
    await control.execute("SELECT pg_reload_conf()")
    await control.close()
    store = await PostgresStore.open(server.get_uri())
    await store.register(FakeHost().owner("o1"))
    await store.commit(Batch((session(), session(S2), user(1))))
    other = await asyncpg.connect(server.get_uri())
    replica = Replica()
    await replica.catch_up(store)
    before = await store.head()
    for _ in range(20):
        await store.renew("o1")
        undone = other.transaction()
        await undone.start()
        await other.execute("SELECT pg_current_xact_id()")
        await undone.rollback()
    reached = int(await other.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))
    assert await store.head() == before
    await replica.catch_up(store)

    await anyio.to_thread.run_sync(restart, server, "immediate")

    other.terminate()
    other = await asyncpg.connect(server.get_uri())
    again = int(await other.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))
    assert again < reached, "the server gives numbers out again"
    with anyio.fail_after(60):  # Past the numbers that it had given out before.
        for n in range(2, 62):
            while True:
                try:
                    await store.commit(Batch((user(n, session=S2 if n % 2 else S1),)))
                    break
                except StoreBusy:
                    continue
    await replica.catch_up(store)
    assert replica.records == await contents(store)
    await other.close()
    await store.close()

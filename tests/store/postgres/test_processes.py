"""Several real processes over one PostgreSQL store."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from holdfast.errors import LeaseLost
from holdfast.store.batch import Batch, Fence
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import SessionQuery
from holdfast.testing.store_contract import Replica
from holdfast.testing.store_contract.build import ses, session, user
from holdfast.testing.store_contract.replica import contents
from tests.store.postgres.processes import Worker, workers
from tests.store.postgres.server import schema_url
from tests.store.postgres.worker import SESSIONS
from tests.until import until

pytestmark = pytest.mark.ci("most of the work is done by a database server")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path))
    yield store
    await store.close()


async def collect(crew: list[Worker], wanted: int) -> list[tuple[str, str, int]]:
    """Claims as (worker, session, number), until there are as many as wanted."""
    claims: list[tuple[str, str, int]] = []

    def look() -> bool:
        for worker in crew:
            claims.extend((worker.name, line.split()[0], int(line.split()[1])) for line in worker.said())
        return len(claims) >= wanted

    await until(look)
    return claims


async def test_three_processes_share_300_sessions_and_one_is_killed(
    store: PostgresStore, tmp_path: Path
) -> None:
    """Each session is claimed once, shares are even, and what a killed process ran is taken over at once."""
    await store.commit(Batch(tuple(session(ses(n), updated=n) for n in range(300))))
    with workers("claim", schema_url(tmp_path), ["w1", "w2", "w3"]) as crew:
        for worker in crew:
            worker.begin()
        first = await collect(crew, 300)

        assert Counter(id for _, id, _ in first) == Counter(ses(n) for n in range(300))
        assert {number for _, _, number in first} == {1}
        shares = Counter(name for name, _, _ in first)
        assert min(shares.values()) >= 30, shares  # A busy machine gives some of them less time.

        lost = {id for name, id, _ in first if name == "w1"}
        crew[0].kill()
        second = await collect(crew[1:], len(lost))

        assert Counter(id for _, id, _ in second) == Counter(lost)
        assert {number for _, _, number in second} == {2}
        assert {name for name, _, _ in second} == {"w2", "w3"}
        with pytest.raises(LeaseLost):
            await store.commit(Batch((user(1, session=min(lost)),), fence=Fence(min(lost), "w1", 1)))
        page = await store.sessions(SessionQuery(limit=1000))
        owners = {each.id: each.owner for each in page.sessions}
        assert owners == {id: name for name, id, _ in first if name != "w1"} | {
            id: name for name, id, _ in second
        }
        for worker in crew[1:]:
            worker.end()


async def test_a_follower_of_three_writing_processes_misses_nothing(
    store: PostgresStore, tmp_path: Path
) -> None:
    """Followed by cursor while they write, the replica equals the store, and no batch end is told twice."""
    await store.commit(Batch(tuple(session(ses(n)) for n in range(SESSIONS))))
    whole, paged = Replica(), Replica()
    with workers("write", schema_url(tmp_path), ["1", "2", "3"]) as crew:
        for worker in crew:
            worker.begin()
        done: list[str] = []
        with anyio.fail_after(120):
            while len(done) < len(crew):
                await whole.catch_up(store, limit=100_000)
                await paged.follow(store, limit=5)
                done += [line for worker in crew for line in worker.said()]
        assert done == ["done"] * 3
        for worker in crew:
            worker.end()
    for replica in (whole, paged):
        await replica.catch_up(store, limit=500)
        await replica.catch_up(store)

        assert replica.records == await contents(store)
        assert (await store.changes(replica.cursor)).records == ()
    assert whole.repeated == 0
    assert (await store.examine()).findings == ()

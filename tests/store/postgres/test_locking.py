"""What is judged and erased under row locks, against transactions of others that are still under way."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from holdfast.errors import Conflict
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Expectation, Fence, Put, Rising, Settled, Unchanged, Unclaimed
from holdfast.store.host import ThisHost, this_process
from holdfast.store.postgres.arguments import arguments, draft
from holdfast.store.postgres.sql import statements
from holdfast.store.postgres.store import PostgresStore
from holdfast.testing.store_contract.build import NONE, S1, msg, prompt, record, ses, session, user
from tests.store.postgres.server import schema_url
from tests.until import until

pytestmark = pytest.mark.ci("most of the work is done by a database server")

ROOT, CHILD = ses(9), ses(1)
"""The child's id is the lesser one."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path))
    yield store
    await store.close()


@pytest.fixture
async def other(store: PostgresStore) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(store.address.dsn)
    yield connection
    await connection.close()


async def write(other: asyncpg.Connection, store: PostgresStore, batch: Batch) -> None:
    """A commit in the other's transaction, which goes on."""
    await other.fetchval(statements(store.address.schema)["commit_one"], *arguments([draft(batch)], [], None))


async def until_waiting(other: asyncpg.Connection) -> None:
    """Return when a backend of this database waits for a lock."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname=current_database() AND wait_event_type='Lock'"
    )
    await until(lambda: other.fetchval(waiting))


async def lock(
    other: asyncpg.Connection, store: PostgresStore, id: str, *, timeout_s: float | None = None
) -> None:
    await other.execute(
        f"SELECT 1 FROM {store.address.schema}.session WHERE id = $1 FOR NO KEY UPDATE", id, timeout=timeout_s
    )


def todo(count: int) -> Put:
    return record(S1, "todo", S1, {"count": count})


@pytest.mark.parametrize(
    ("change", "expectation", "meanwhile"),
    [
        pytest.param(todo(2), Unchanged(S1, "todo", S1, 2), todo(1), id="unchanged"),
        pytest.param(user(5), Unchanged(S1, "message", msg(5), 0), user(5), id="absent"),
        pytest.param(None, Unchanged(NONE, "session", NONE, 0), session(NONE), id="no session"),
        pytest.param(todo(2), Settled(S1, "prompt"), prompt(3), id="settled"),
        pytest.param(None, Settled(S1, "todo"), record(S1, "todo", S1, {}, mark=Mark.OPEN), id="asked"),
        pytest.param(user(5), Rising(S1), user(6), id="rising"),
        pytest.param(user(5), Unclaimed(S1), None, id="unclaimed"),
    ],
)
async def test_an_expectation_waits_for_who_was_first(
    store: PostgresStore,
    other: asyncpg.Connection,
    change: Put | None,
    expectation: Expectation,
    meanwhile: Put | None,
) -> None:
    """A commit of another that is not yet through counts: what is expected is judged after it."""
    await store.commit(Batch((session(), todo(0))))
    await store.register(this_process(ThisHost(), id="o1", placements=("here",)))
    transaction = other.transaction()
    await transaction.start()
    if meanwhile is None:
        await other.fetch(statements(store.address.schema)["claim"], S1, "o1")
    else:
        await write(other, store, Batch((meanwhile,)))

    batch = Batch(() if change is None else (change,), (expectation,))
    ours = asyncio.create_task(store.commit(batch))
    await asyncio.sleep(0.2)
    assert not ours.done()
    await transaction.commit()

    with pytest.raises(Conflict):
        await ours


async def test_a_tree_is_locked_in_the_order_of_ids(store: PostgresStore, other: asyncpg.Connection) -> None:
    """An erasure and a commit that touches parent and child wait for each other, and not both at once."""
    await store.commit(Batch((session(ROOT), session(CHILD, parent=ROOT))))
    transaction = other.transaction()
    await transaction.start()
    await lock(other, store, CHILD)
    erasure = asyncio.create_task(store.erase(ROOT))
    await until_waiting(other)

    await lock(other, store, ROOT)  # A deadlock, if the erasure had taken the root first.
    await write(other, store, Batch((user(1, session=CHILD), user(1, session=ROOT))))
    await transaction.commit()

    assert list(await erasure) == [CHILD, ROOT]


async def test_an_erasure_that_was_undone_for_another_is_repeated(
    store: PostgresStore, other: asyncpg.Connection
) -> None:
    """Of two that lock in different orders the server undoes one: the erasure is made again."""
    # The server looks for a deadlock once, a second after a wait began, and undoes the transaction that
    # looked: never the other one's. On a machine that stands still for that second the erasure looks too
    # early, and there is no deadlock to undo: it is tried with the next tree.
    await other.execute("SET deadlock_timeout = '1h'")
    for n in range(10):
        root, child = ses(90 + n), ses(10 + n)
        await store.commit(Batch((session(root), session(child, parent=root))))
        transaction = other.transaction()
        await transaction.start()
        await lock(other, store, root)
        erasure = asyncio.create_task(store.erase(root))
        await until_waiting(other)
        try:
            await lock(other, store, child, timeout_s=3)  # Waits for the erasure, until that is undone.
        except TimeoutError:
            await transaction.rollback()
            await erasure
            continue
        assert not erasure.done()
        await transaction.commit()
        assert list(await erasure) == [child, root]
        return
    pytest.fail("no deadlock came about")


async def test_a_child_that_comes_while_the_erasure_waits_is_erased(
    store: PostgresStore, other: asyncpg.Connection
) -> None:
    """It was put before the parent's lock was had, so it belongs to the tree."""
    late = ses(4)
    await store.commit(Batch((session(ROOT), session(CHILD, parent=ROOT))))
    transaction = other.transaction()
    await transaction.start()
    await write(other, store, Batch((session(late, parent=CHILD),)))
    erasure = asyncio.create_task(store.erase(ROOT))
    await until_waiting(other)
    await transaction.commit()

    assert list(await erasure) == [late, CHILD, ROOT]
    assert await store.session(late) is None


async def test_a_claim_while_an_erasure_waits_keeps_the_session(
    store: PostgresStore, other: asyncpg.Connection
) -> None:
    """Whether a session is busy is judged under its lock."""
    from holdfast.errors import Refused

    await store.commit(Batch((session(),)))
    await store.register(this_process(ThisHost(), id="o1", placements=("here",)))
    transaction = other.transaction()
    await transaction.start()
    (row,) = await other.fetch(statements(store.address.schema)["claim"], S1, "o1")
    erasure = asyncio.create_task(store.erase(S1))
    await asyncio.sleep(0.2)
    await transaction.commit()

    with pytest.raises(Refused):
        await erasure
    assert list(await store.erase(S1, fence=Fence(S1, "o1", row["number"]))) == [S1]

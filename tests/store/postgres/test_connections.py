"""Connections that break, servers that come and go, settings that are too weak."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import asyncpg
import pytest

from holdfast.errors import InvalidInput, StoreBusy
from holdfast.store.batch import Batch, Fence, Put, Unchanged
from holdfast.store.postgres import wakes
from holdfast.store.postgres.address import parse_url
from holdfast.store.postgres.sql import PREFIX
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.testing.store_contract.build import S1, ses, session, text, user
from tests.store.postgres.server import schema_url
from tests.until import until

pytestmark = pytest.mark.ci("most of the work is done by a database server")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path))
    await store.commit(Batch((session(),)))
    yield store
    await store.close()


@pytest.fixture
async def other(store: PostgresStore) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(store.address.dsn)
    yield connection
    await connection.close()


async def hang_up_all(other: asyncpg.Connection) -> None:
    """What a restart of the server does to its clients."""
    await other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'"
    )


async def test_broken_connections_are_replaced(store: PostgresStore, other: asyncpg.Connection) -> None:
    """After all connections broke, at most one use of each fails, as busy; then everything works."""
    await store.messages(MessageQuery(S1))
    await hang_up_all(other)
    await until(lambda: all(each.is_closed() for each in (*store._reads._idle, *store._writes._idle)))

    refused = 0
    for n in range(1, 5):
        try:
            await store.commit(Batch((user(n),)))
            await store.session(S1)
            await store.head()
        except StoreBusy:
            refused += 1
    assert refused <= 1
    await store.commit(Batch((user(9),)))
    assert (await store.messages(MessageQuery(S1))).messages[-1].info.id == user(9).id


async def test_wakes_come_back_after_a_break(
    store: PostgresStore, other: asyncpg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listening connection is replaced, and commits of others wake again, without the poll."""
    monkeypatch.setattr(wakes, "POLL_S", 600.0)
    second = await PostgresStore.open(schema_url(tmp_path))
    former = {store._wakes._connection, second._wakes._connection}
    watch = store.watch()
    await hang_up_all(other)

    def listens_again() -> bool:
        now = [each._wakes._connection for each in (store, second)]
        return all(each is not None and each not in former and not each.is_closed() for each in now)

    await until(listens_again)
    with contextlib.suppress(StoreBusy):  # The first use of a broken connection; it may be written.
        await second.commit(Batch((user(9),)))
    for n in range(1, 6):
        watch.event.clear()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(watch.wait)
                await second.commit(Batch((user(n),)))
    watch.close()
    await second.close()


async def test_a_long_lock_is_busy_and_not_for_ever(
    store: PostgresStore, other: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who holds a session's row for too long makes a commit fail as busy; nothing was written."""
    async with store._writes.use() as connection:
        await connection.execute("SET lock_timeout = 200")
    transaction = other.transaction()
    await transaction.start()
    await other.execute(f"SELECT 1 FROM {store.address.schema}.session WHERE id = $1 FOR UPDATE", S1)

    with pytest.raises(StoreBusy):
        await store.commit(Batch((user(1),)))
    await transaction.rollback()

    assert (await store.messages(MessageQuery(S1))).messages == ()


async def test_one_batch_that_the_server_cannot_hold_fails_alone(store: PostgresStore) -> None:
    """A value too long for an index is the caller's fault, and the batches beside it are written."""
    outcomes: dict[int, str] = {}

    async def commit(n: int) -> None:
        project = "p" * 100_000 if n == 7 else "global"
        # Random letters, since a repeated one would be compressed into the index after all.
        import secrets

        project = secrets.token_hex(50_000) if n == 7 else project
        try:
            await store.commit(Batch((session(ses(n), project=project), user(1, session=ses(n)))))
            outcomes[n] = "written"
        except InvalidInput:
            outcomes[n] = "refused"

    async with anyio.create_task_group() as group:
        for n in range(5, 25):
            group.start_soon(commit, n)

    assert outcomes == {n: "refused" if n == 7 else "written" for n in range(5, 25)}
    assert await store.session(ses(7)) is None


@pytest.mark.parametrize("data", [b'{"a":"\0"}', b'{"a":"\xff"}', b"\xed\xa0\x80"])
async def test_bytes_that_are_no_text_are_invalid(store: PostgresStore, data: bytes) -> None:
    """A zero byte and broken UTF-8 never reach the server."""
    with pytest.raises(InvalidInput):
        await store.commit(Batch((Put(S1, "message", "msg_1", data),)))


HUGE = 2**70


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda store: store.sessions(SessionQuery(updated_from=HUGE)), id="sessions"),
        pytest.param(lambda store: store.changes(None, limit=HUGE), id="changes"),
        pytest.param(lambda store: store._reads.call("SELECT $1::bigint", HUGE), id="any read"),
        pytest.param(lambda store: store._reads.call("SELECT $1::text", "\ud800"), id="a surrogate"),
        pytest.param(lambda store: store._reads.call("SELECT 1/$1::int", 0), id="the server's own no"),
        pytest.param(lambda store: store._writes.call("SELECT $1::bigint", HUGE), id="any write"),
        pytest.param(lambda store: store._wakes.call("SELECT $1::bigint", HUGE), id="the direct one"),
        pytest.param(
            lambda store: store.commit(Batch((), (Unchanged(S1, "session", S1, HUGE),))), id="commit"
        ),
        pytest.param(lambda store: store.commit(Batch((), (), Fence(S1, "o\ud800", 1))), id="fence"),
    ],
)
async def test_a_value_that_cannot_be_sent_harms_nobody_else(
    store: PostgresStore, other: asyncpg.Connection, ask: Callable[[PostgresStore], Awaitable[object]]
) -> None:
    """It is the caller's mistake, and the connection that it was tried on is not left inside something."""
    watch = store.watch()
    with pytest.raises(InvalidInput):
        await ask(store)

    for n in range(1, 5):
        await store.commit(Batch((user(n),)))
        assert len((await store.messages(MessageQuery(S1))).messages) == n
        seen = await other.fetchval(f"SELECT count(*) FROM {store.address.schema}.record")
        assert seen == n, "a commit that was acknowledged but not made"
        await store._wakes.call("SELECT 1")
    watch.close()
    states = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast' AND state LIKE 'idle in%'"
    )
    assert await other.fetchval(states) == 0


@pytest.mark.parametrize("steps", range(12))
async def test_a_read_that_was_given_up_harms_nobody_else(store: PostgresStore, steps: int) -> None:
    """At whichever step its caller goes away, the connection is good for the next, or is not used again."""
    asked = asyncio.create_task(store.sessions(SessionQuery(title=f"x{steps}")))
    for _ in range(steps):
        await asyncio.sleep(0.0002)
    asked.cancel()
    await asyncio.wait([asked])

    for n in range(1, 4):
        await store.commit(Batch((user(n),)))
        assert len((await store.messages(MessageQuery(S1))).messages) == n


async def test_waiting_batches_share_transactions(store: PostgresStore) -> None:
    """Two hundred commits at once take a few transactions, not two hundred."""
    async with store._writes.use() as connection:
        before = await connection.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")

    async with anyio.create_task_group() as group:
        for n in range(1, 201):
            group.start_soon(store.commit, Batch((user(n), text(1000 + n, n))))

    async with store._writes.use() as connection:
        after = await connection.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        bodies = await connection.fetchval(f"SELECT count(DISTINCT born) FROM {store.address.schema}.record")
    assert len((await store.messages(MessageQuery(S1))).messages) == 200
    assert bodies <= 8
    assert after - before < 300  # subtransactions have numbers too


@pytest.mark.parametrize(
    ("setting", "kept"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")],
)
async def test_a_commit_is_durable_whatever_the_server_prefers(
    store: PostgresStore, setting: str, kept: str
) -> None:
    """A weaker synchronous_commit is raised for the commit, a stronger one is kept."""
    async with store._writes.use() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL synchronous_commit = {setting}")
        await connection.execute(f"SELECT {store.address.schema}.{PREFIX}durable()")
        assert await connection.fetchval("SHOW synchronous_commit") == kept


async def test_an_expectation_is_judged_under_the_lock(store: PostgresStore, tmp_path: Path) -> None:
    """Two processes that commit at once upon one expectation: the second sees what the first did."""
    from holdfast.errors import Conflict

    second = await PostgresStore.open(schema_url(tmp_path))
    outcomes: list[str] = []

    async def create(each: PostgresStore) -> None:
        try:
            await each.commit(Batch((user(1),), (Unchanged(S1, "message", user(1).id, 0),)))
            outcomes.append("written")
        except Conflict:
            outcomes.append("refused")

    async with anyio.create_task_group() as group:
        group.start_soon(create, store)
        group.start_soon(create, second)
    await second.close()

    assert sorted(outcomes) == ["refused", "written"]


def test_the_url_of_a_test_has_its_own_schema(tmp_path: Path) -> None:
    """Stores of different tests share a server and nothing else."""
    assert parse_url(schema_url(tmp_path)).schema != parse_url(schema_url(tmp_path / "x")).schema

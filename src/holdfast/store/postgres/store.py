"""The PostgreSQL store: the port over one writer, two readers and one direct connection."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

from holdfast.clock import Clock
from holdfast.errors import Refused, StoreError
from holdfast.schema.stored import Kind, Mark
from holdfast.store.base import TOMBSTONE_MS
from holdfast.store.batch import Batch, Fence, Held, Receipt, Settled
from holdfast.store.check import check_session
from holdfast.store.examining import Examining
from holdfast.store.host import Host, ThisHost
from holdfast.store.owner import Owner
from holdfast.store.postgres.address import Address, parse_url
from holdfast.store.postgres.arguments import draft
from holdfast.store.postgres.connections import PATIENT_S, USE_S, Connections, connect, hang_up
from holdfast.store.postgres.failure import READING_ONLY, translated
from holdfast.store.postgres.feed import Feed
from holdfast.store.postgres.group import GroupCommit
from holdfast.store.postgres.leases import Leases
from holdfast.store.postgres.pages import Pages
from holdfast.store.postgres.prepare import is_restored, prepare, stamp_again
from holdfast.store.postgres.reader import Reader
from holdfast.store.postgres.search import search
from holdfast.store.postgres.sql import statements
from holdfast.store.postgres.wakes import Wakes
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import (
    Changes,
    Found,
    JsonPage,
    MadePage,
    MessagePage,
    Resync,
    SessionPage,
    SessionRecord,
    StoredMessage,
    StoredRecord,
)
from holdfast.store.report import Progress, Report
from holdfast.store.watch import StoreWatch

T = TypeVar("T")

READERS = 2


class PostgresStore:
    """See `store.base.Store` for what each method promises."""

    def __init__(self, address: Address, clock: Clock | None, host: Host) -> None:
        self.address = address
        schema = address.schema
        self._writes = Connections(address, 1, reading=False)
        self._reads = Connections(address, READERS, reading=True)
        self._wakes = Wakes(address)
        self._leases = Leases(self._reads, self._wakes, schema, clock, host)
        self._group = GroupCommit(
            self._writes,
            address,
            gone=self._leases.gone,
            now_ms=self._leases.now_ms,
            written=self._wakes.written,
        )
        self._reader = Reader(self._reads, schema, self._leases)
        self._pages = Pages(self._reads, schema)
        self._feed = Feed(self._reads, schema)
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, url: str, *, clock: Clock | None = None, host: Host | None = None, create: bool = True
    ) -> Self:
        """Open the store behind a URL, making it if it is new. Without a clock the database's own counts."""
        address = parse_url(url)
        connection = await connect(address)
        try:
            # The server's own time-outs do not help when its answers never come.
            async with asyncio.timeout(USE_S):
                await prepare(connection, address, create=create)
                writable = await connection.fetchval("SHOW transaction_read_only") == "off"
                restored = writable and await is_restored(connection, address)
            if restored:
                async with asyncio.timeout(PATIENT_S):
                    await stamp_again(connection, address)
        except Exception as error:
            raise translated(error, address.shown) from error
        finally:
            await hang_up(connection)
        store = cls(address, clock, host or ThisHost())
        await store._wakes.open()
        return store

    async def commit(self, batch: Batch) -> Receipt:
        return await self._group.commit(draft(batch))

    async def session(self, id: str) -> SessionRecord | None:
        return await self._reader.session(id)

    async def sessions(self, query: SessionQuery) -> SessionPage:
        return await self._reader.sessions(query)

    async def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        return await self._reader.get(session, kind, id)

    async def select(
        self, kind: Kind, *, session: str | None = None, mark: Mark | None = None
    ) -> Sequence[StoredRecord]:
        return await self._reader.select(kind, session, mark)

    async def holders(self, kind: Kind, id: str) -> Sequence[str]:
        return await self._reader.holders(kind, id)

    async def messages(self, query: MessageQuery) -> MessagePage:
        return await self._pages.messages(query)

    async def messages_json(self, query: MessageQuery) -> JsonPage:
        return await self._pages.messages_json(query)

    async def messages_made(self, query: MessageQuery, make: Callable[[bytes], T]) -> MadePage[T]:
        return await self._pages.messages_made(query, make)

    async def originals(self, session: str, below: int | None = None) -> Sequence[StoredMessage]:
        return await self._pages.originals(session, below)

    async def head(self) -> str:
        return await self._feed.head()

    async def changes(
        self, cursor: str | None, session: str | None = None, *, limit: int = 1000, recent: bool = False
    ) -> Changes | Resync:
        return await self._feed.changes(cursor, session, limit)

    def watch(self) -> StoreWatch:
        return self._wakes.join()

    async def search(self, query: SearchQuery) -> Found:
        return await search(self._reads, self.address.schema, query)

    async def erase(
        self, session: str, *, fence: Fence | None = None, idle_since_ms: int | None = None
    ) -> Sequence[str]:
        check_session(session)
        gone = await self._leases.gone()
        values = (None, None, None) if fence is None else (fence.session, fence.owner, fence.number)
        erased = await self._write("erase", session, *values, gone, self._leases.now_ms(), idle_since_ms)
        self._wakes.written()
        assert isinstance(erased, list)
        return erased

    async def _write(self, name: str, *values: object) -> object:
        return await self._writes.call(statements(self.address.schema)[name], *values)

    async def register(self, owner: Owner) -> None:
        await self._leases.register(owner)

    async def renew(self, owner: str) -> None:
        await self._leases.renew(owner)

    async def retire(self, owner: str) -> None:
        await self._leases.retire(owner)

    async def bury(self, owner: str) -> Sequence[str]:
        return await self._leases.bury(owner)

    async def claim(self, session: str, owner: str) -> Fence | Held:
        check_session(session)
        return await self._leases.claim(session, owner)

    async def renumber(self, fence: Fence) -> Fence:
        return await self._leases.renumber(fence)

    async def release(self, fence: Fence, *, settled: bool = False) -> None:
        expect = (Settled(fence.session, "prompt"),) if settled else ()
        await self.commit(Batch(expect=expect, fence=fence, release=True))

    async def sweep(self) -> None:
        try:
            await self._write("sweep", TOMBSTONE_MS, self._leases.now_ms())
        except StoreError as error:
            # Housekeeping, which a store that may only be read leaves to others.
            if not isinstance(error.__cause__, READING_ONLY):
                raise

    async def examine(self, *, repair: bool = False, progress: Progress | None = None) -> Report:
        from holdfast.store.postgres.examine import examine

        connections = self._writes if repair else self._reads
        examining = Examining(progress)
        return await examine(
            connections, self.address.schema, self._leases.now_ms(), examining, repair=repair
        )

    async def backup(self, path: str) -> None:
        """Not ours to make: the server has better means."""
        raise Refused(
            f"a PostgreSQL store is backed up with `pg_dump --schema={self.address.schema}`, "
            "or with the server's own base backups"
        )

    async def close(self) -> None:
        """Write what was submitted, then hang up. A cancelled close still closes."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._group.close()
        await self._wakes.close()
        await self._writes.close()
        await self._reads.close()

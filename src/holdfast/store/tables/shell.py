"""The async shell over the tables: each method of the port is one job for a thread.

Shared by the engines that number and find records in these tables, wherever they keep the JSON.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from holdfast.clock import Clock
from holdfast.errors import InvalidInput, StoreError
from holdfast.schema.stored import Kind, Mark
from holdfast.store.base import TOMBSTONE_MS
from holdfast.store.batch import Batch, Fence, Held, Receipt, Remove, Settled
from holdfast.store.check import check_batch, check_session
from holdfast.store.owner import Owner, Renewals
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
from holdfast.store.tables.erase import erase
from holdfast.store.tables.feed import Feed
from holdfast.store.tables.leases import Leases
from holdfast.store.tables.reader import Reader
from holdfast.store.tables.search import Name
from holdfast.store.tables.watch import Wakes
from holdfast.store.tables.writer import Writer
from holdfast.store.watch import StoreWatch

T = TypeVar("T")


class Writes(Protocol):
    """What a writing thread must have."""

    @property
    def writer(self) -> Writer: ...
    @property
    def leases(self) -> Leases: ...

    def rows(self, sql: str, *bindings: object) -> list[Any]: ...


class Reads(Protocol):
    """What a reading thread must have."""

    @property
    def reader(self) -> Reader: ...
    @property
    def feed(self) -> Feed: ...

    def search(self, query: SearchQuery) -> Found: ...

    def forget_words(self, names: Sequence[Name]) -> None: ...

    def keep_indexed(self, *, records: int) -> bool: ...


SEARCH_SLICE, SEARCH_PAUSE_S = 500, 0.02
"""How the search index goes on after a search that could not wait for it."""

W = TypeVar("W", bound=Writes)
R = TypeVar("R", bound=Reads)


class Shell(ABC, Generic[W, R]):
    """See `store.base.Store` for what each method promises."""

    def __init__(self, path: Path, clock: Clock, wakes: Wakes) -> None:
        self.path = path
        self.clock = clock
        self.renewals = Renewals()
        self._loop = asyncio.get_running_loop()
        self._wakes = wakes
        self._closed = False
        self._closing: asyncio.Task[None] | None = None
        self._indexing: asyncio.Task[None] | None = None

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput(f"the store {self.path} was closed")
        if asyncio.get_running_loop() is not self._loop:
            raise InvalidInput(f"the store {self.path} was opened in another event loop; open it here")

    @abstractmethod
    async def write(self, work: Callable[[W], T]) -> T:
        """Do something in the writing thread, in its next group."""

    @abstractmethod
    async def read(self, work: Callable[[R], T]) -> T:
        """Do something in a reading thread, in one snapshot."""

    async def commit(self, batch: Batch) -> Receipt:
        check_batch(batch)
        receipt = await self.write(lambda connection: connection.writer.apply(batch))
        removed = [(each.session, each.kind, each.id) for each in batch.changes if isinstance(each, Remove)]
        if removed:
            await self._forget_words(removed)
        return receipt

    async def _forget_words(self, names: Sequence[Name]) -> None:
        """What was removed leaves the search index too, before the removal is answered."""
        await self.read(lambda connection: connection.forget_words(names))

    async def session(self, id: str) -> SessionRecord | None:
        return await self.read(lambda connection: connection.reader.session(id))

    async def sessions(self, query: SessionQuery) -> SessionPage:
        return await self.read(lambda connection: connection.reader.sessions(query))

    async def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        return await self.read(lambda connection: connection.reader.get(session, kind, id))

    async def select(
        self, kind: Kind, *, session: str | None = None, mark: Mark | None = None
    ) -> Sequence[StoredRecord]:
        return await self.read(lambda connection: connection.reader.select(kind, session, mark))

    async def holders(self, kind: Kind, id: str) -> Sequence[str]:
        return await self.read(lambda connection: connection.reader.holders(kind, id))

    async def messages(self, query: MessageQuery) -> MessagePage:
        return await self.read(lambda connection: connection.reader.messages(query))

    async def messages_json(self, query: MessageQuery) -> JsonPage:
        return await self.read(lambda connection: connection.reader.messages_json(query))

    async def messages_made(self, query: MessageQuery, make: Callable[[bytes], T]) -> MadePage[T]:
        return await self.read(lambda connection: connection.reader.messages_made(query, make))

    async def originals(self, session: str, below: int | None = None) -> Sequence[StoredMessage]:
        return await self.read(lambda connection: connection.reader.originals(session, below))

    async def head(self) -> str:
        return await self.read(lambda connection: connection.feed.head())

    async def changes(
        self, cursor: str | None, session: str | None = None, *, limit: int = 1000, recent: bool = False
    ) -> Changes | Resync:
        return await self.read(lambda connection: connection.feed.changes(cursor, session, limit))

    async def search(self, query: SearchQuery) -> Found:
        found = await self.read(lambda connection: connection.search(query))
        if found.indexed < 1:
            self._go_on_indexing(records=SEARCH_SLICE, pause_s=SEARCH_PAUSE_S)
        return found

    def _go_on_indexing(self, *, records: int, pause_s: float) -> None:
        """Let the search index follow, so many records at a time, with pauses in which others read."""
        if self._indexing is None or self._indexing.done():
            self._indexing = asyncio.create_task(self._index(records, pause_s))

    async def _index(self, records: int, pause_s: float) -> None:
        with suppress(StoreError):  # The next search does what was left undone, or says why it cannot.
            while True:
                if await self.read(lambda connection: connection.keep_indexed(records=records)):
                    return
                await asyncio.sleep(pause_s)

    async def register(self, owner: Owner) -> None:
        await self.write(lambda connection: connection.leases.register(owner))
        self.renewals.note(owner.id, self.clock.boot_ms())

    async def retire(self, owner: str) -> None:
        await self.write(lambda connection: connection.leases.retire(owner))
        self.renewals.forget(owner)

    async def bury(self, owner: str) -> Sequence[str]:
        patient = self.renewals.may_bury(owner, self.clock.boot_ms())
        return await self.write(lambda connection: connection.leases.bury(owner, patient=patient))

    async def claim(self, session: str, owner: str) -> Fence | Held:
        return await self.write(lambda connection: connection.leases.claim(session, owner))

    async def renumber(self, fence: Fence) -> Fence:
        return await self.write(lambda connection: connection.leases.renumber(fence))

    async def release(self, fence: Fence, *, settled: bool = False) -> None:
        expect = (Settled(fence.session, "prompt"),) if settled else ()
        await self.commit(Batch(fence=fence, expect=expect, release=True))

    async def sweep(self) -> None:
        before_ms = self.clock.now_ms() - TOMBSTONE_MS
        await self.write(lambda connection: connection.writer.sweep(before_ms))

    def watch(self) -> StoreWatch:
        self._check_open()
        return self._wakes.join()

    async def erase(
        self, session: str, *, fence: Fence | None = None, idle_since_ms: int | None = None
    ) -> Sequence[str]:
        check_session(session)
        erased = await self.write(lambda connection: erase(connection, session, fence, idle_since_ms))
        await self._forget_words([(id, "session", id) for id in erased])
        return erased

    async def close(self) -> None:
        """End the threads; what was submitted before is written first. A cancelled close still closes."""
        if self._closing is None:
            self._closed = True
            if self._indexing is not None:
                self._indexing.cancel()
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    @abstractmethod
    async def _close(self) -> None:
        """End the threads and let go of what they hold."""

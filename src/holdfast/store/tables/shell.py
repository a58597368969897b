"""The async shell over the tables: each method of the port is one job for a thread.

Shared by the engines that number and find records in these tables, wherever they keep the JSON.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from holdfast.clock import Clock
from holdfast.schema.stored import Kind, Mark
from holdfast.store.base import TOMBSTONE_MS
from holdfast.store.batch import Batch, Fence, Held, Receipt, Remove, Settled
from holdfast.store.check import check_batch
from holdfast.store.owner import Owner, Renewals
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import (
    Changes,
    Hit,
    JsonPage,
    MessagePage,
    Resync,
    SessionPage,
    SessionRecord,
    StoredRecord,
)
from holdfast.store.tables.feed import Feed
from holdfast.store.tables.leases import Leases
from holdfast.store.tables.reader import Reader
from holdfast.store.tables.writer import Writer

T = TypeVar("T")


class Writes(Protocol):
    """What a writing thread must have."""

    @property
    def writer(self) -> Writer: ...
    @property
    def leases(self) -> Leases: ...


class Reads(Protocol):
    """What a reading thread must have."""

    @property
    def reader(self) -> Reader: ...
    @property
    def feed(self) -> Feed: ...

    def search(self, query: SearchQuery) -> Sequence[Hit]: ...

    def keep_indexed(self) -> bool: ...


W = TypeVar("W", bound=Writes)
R = TypeVar("R", bound=Reads)


class Shell(ABC, Generic[W, R]):
    """See `store.base.Store` for what each method promises."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.renewals = Renewals()

    @abstractmethod
    async def write(self, work: Callable[[W], T]) -> T:
        """Do something in the writing thread, in its next group."""

    @abstractmethod
    async def read(self, work: Callable[[R], T]) -> T:
        """Do something in a reading thread, in one snapshot."""

    async def commit(self, batch: Batch) -> Receipt:
        check_batch(batch)
        receipt = await self.write(lambda hand: hand.writer.apply(batch))
        if any(isinstance(change, Remove) for change in batch.changes):
            await self.forget_words()
        return receipt

    async def forget_words(self) -> None:
        """What was removed leaves the search index too, before the removal is answered."""
        await self.read(lambda hand: hand.keep_indexed())

    async def session(self, id: str) -> SessionRecord | None:
        return await self.read(lambda hand: hand.reader.session(id))

    async def sessions(self, query: SessionQuery) -> SessionPage:
        return await self.read(lambda hand: hand.reader.sessions(query))

    async def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        return await self.read(lambda hand: hand.reader.get(session, kind, id))

    async def select(
        self, kind: Kind, *, session: str | None = None, mark: Mark | None = None
    ) -> Sequence[StoredRecord]:
        return await self.read(lambda hand: hand.reader.select(kind, session, mark))

    async def messages(self, query: MessageQuery) -> MessagePage:
        return await self.read(lambda hand: hand.reader.messages(query))

    async def messages_json(self, query: MessageQuery) -> JsonPage:
        return await self.read(lambda hand: hand.reader.messages_json(query))

    async def head(self) -> str:
        return await self.read(lambda hand: hand.feed.head())

    async def changes(
        self, cursor: str | None, session: str | None = None, *, limit: int = 1000, recent: bool = False
    ) -> Changes | Resync:
        return await self.read(lambda hand: hand.feed.changes(cursor, session, limit))

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        return await self.read(lambda hand: hand.search(query))

    async def register(self, owner: Owner) -> None:
        await self.write(lambda hand: hand.leases.register(owner))
        self.renewals.note(owner.id, self.clock.boot_ms())

    async def retire(self, owner: str) -> None:
        await self.write(lambda hand: hand.leases.retire(owner))
        self.renewals.forget(owner)

    async def bury(self, owner: str) -> Sequence[str]:
        patient = self.renewals.may_bury(owner, self.clock.boot_ms())
        return await self.write(lambda hand: hand.leases.bury(owner, patient=patient))

    async def claim(self, session: str, owner: str) -> Fence | Held:
        return await self.write(lambda hand: hand.leases.claim(session, owner))

    async def renumber(self, fence: Fence) -> Fence:
        return await self.write(lambda hand: hand.leases.renumber(fence))

    async def release(self, fence: Fence, *, settled: bool = False) -> None:
        expect = (Settled(fence.session, "prompt"),) if settled else ()
        await self.commit(Batch(fence=fence, expect=expect, release=True))

    async def sweep(self) -> None:
        before_ms = self.clock.now_ms() - TOMBSTONE_MS
        await self.write(lambda hand: hand.writer.sweep(before_ms))

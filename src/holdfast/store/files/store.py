"""The files store: the async shell over one writing thread and two reading ones."""

import asyncio
import queue
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast

import anyio.to_thread
import apsw

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidInput, StoreError
from holdfast.schema.stored import Kind, Mark
from holdfast.store.base import TOMBSTONE_MS, Failpoint, no_failpoint
from holdfast.store.batch import Batch, Fence, Held, Receipt, Remove, Settled
from holdfast.store.check import check_batch, check_session
from holdfast.store.files.hands import ReadingHand, WritingHand
from holdfast.store.files.layout import component
from holdfast.store.files.root import Root
from holdfast.store.host import Host, ThisHost
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
from holdfast.store.report import Report
from holdfast.store.sqlite.database import translated
from holdfast.store.sqlite.erasing import erase
from holdfast.store.sqlite.threads import Job, Worker, submit
from holdfast.store.sqlite.watch import StoreWatch, Wakes

if TYPE_CHECKING:
    from holdfast.store.sqlite import hands as tables_hands

T = TypeVar("T")

READERS = 2


class FilesStore:
    """See `store.base.Store` for what each method promises."""

    def __init__(self, root: Root, clock: Clock, host: Host, failpoint: Failpoint) -> None:
        self.root = root
        self.clock, self.host = clock, host
        self._loop = asyncio.get_running_loop()
        self._renewals = Renewals()
        self._wakes = Wakes(root.index.wake_path)
        self._writes: queue.SimpleQueue[Job[WritingHand] | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Job[ReadingHand] | None] = queue.SimpleQueue()
        hand = WritingHand(root.index, clock, host, failpoint, self._wakes.written)
        self._hands: list[WritingHand | ReadingHand] = [hand]
        self._workers: list[Worker[WritingHand] | Worker[ReadingHand]] = [
            Worker("holdfast-files-writer", self._writes, hand.run, group=64)
        ]
        for number in range(READERS):
            reader = ReadingHand(root.index, clock, host, failpoint)
            self._hands.append(reader)
            self._workers.append(Worker(f"holdfast-files-reader-{number}", self._reads, reader.run, group=1))
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        root: Path,
        *,
        create: bool = True,
        adopt: bool = False,
        clock: Clock | None = None,
        host: Host | None = None,
        failpoint: Failpoint = no_failpoint,
    ) -> Self:
        """Open the store in a folder, making it if it is new; another's tree only with `adopt`."""
        here = Root(root)
        clock, host = clock or SystemClock(), host or ThisHost()
        boot = host.boot
        try:
            await anyio.to_thread.run_sync(
                lambda: here.prepare(failpoint=failpoint, create=create, adopt=adopt, clock=clock, boot=boot)
            )
            return cls(here, clock, host, failpoint)
        except apsw.Error as error:
            raise translated(error, here.index.path) from error
        except OSError as error:
            raise StoreError(f"{root} cannot be opened as a store: {error}") from error

    async def write(self, work: Callable[[WritingHand], T]) -> T:
        """Do something in the writing thread, in its next group."""
        self._check_open()
        return await submit(self._writes, work)

    async def read(self, work: Callable[[ReadingHand], T]) -> T:
        """Do something in a reading thread, with the store held still."""
        self._check_open()
        return await submit(self._reads, work)

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput(f"the store {self.root.path} was closed")
        if asyncio.get_running_loop() is not self._loop:
            raise InvalidInput(f"the store {self.root.path} was opened in another event loop; open it here")

    async def commit(self, batch: Batch) -> Receipt:
        check_batch(batch)
        receipt = await self.write(lambda hand: hand.writer.apply(batch))
        if any(isinstance(change, Remove) for change in batch.changes):
            await self._forget_words()
        return receipt

    async def _forget_words(self) -> None:
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
        self, cursor: str | None, session: str | None = None, *, limit: int = 1000
    ) -> Changes | Resync:
        return await self.read(lambda hand: hand.feed.changes(cursor, session, limit))

    def watch(self) -> StoreWatch:
        self._check_open()
        return self._wakes.join()

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        return await self.read(lambda hand: hand.search(query))

    async def erase(self, session: str, *, fence: Fence | None = None) -> Sequence[str]:
        check_session(session)
        # The tables' own erasing asks a hand for three things, which ours has too.
        erased = await self.write(lambda hand: erase(cast("tables_hands.WritingHand", hand), session, fence))
        await self._forget_words()
        return erased

    async def register(self, owner: Owner) -> None:
        component(owner.id, "owner")
        await self.write(lambda hand: hand.leases.register(owner))
        self._renewals.note(owner.id, self.clock.boot_ms())

    async def renew(self, owner: str) -> None:
        await self.read(lambda hand: hand.renew(owner))
        self._renewals.note(owner, self.clock.boot_ms())

    async def retire(self, owner: str) -> None:
        await self.write(lambda hand: hand.leases.retire(owner))
        self._renewals.forget(owner)

    async def bury(self, owner: str) -> Sequence[str]:
        patient = self._renewals.may_bury(owner, self.clock.boot_ms())
        return await self.write(lambda hand: hand.leases.bury(owner, patient=patient))

    async def claim(self, session: str, owner: str) -> Fence | Held:
        return await self.write(lambda hand: hand.leases.claim(session, owner))

    async def release(self, fence: Fence, *, settled: bool = False) -> None:
        expect = (Settled(fence.session, "prompt"),) if settled else ()
        await self.commit(Batch(fence=fence, expect=expect, release=True))

    async def sweep(self) -> None:
        before_ms = self.clock.now_ms() - TOMBSTONE_MS
        await self.write(lambda hand: hand.writer.sweep(before_ms))

    async def examine(self, *, repair: bool = False) -> Report:
        from holdfast.store.files.mend import examine

        return await examine(self, repair=repair)

    async def backup(self, path: str) -> None:
        from holdfast.store.files.backup import copy_tree

        await self.read(lambda hand: copy_tree(hand.disk, Path(path)))

    async def close(self) -> None:
        """End the threads; what was submitted before is written first. A cancelled close still closes."""
        if self._closing is None:
            self._closed = True
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._writes.put(None)
        for _ in range(READERS):
            self._reads.put(None)
        async with AsyncExitStack() as rest:  # One that fails does not keep the others open.
            for hand in self._hands:  # The writer's connection closes last and tidies the log away.
                rest.push_async_callback(anyio.to_thread.run_sync, hand.close)
            rest.callback(self._wakes.close)
            for worker in self._workers:
                await anyio.to_thread.run_sync(worker.join, 30.0)

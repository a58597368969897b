"""The files store: the async shell over one writing thread and two reading ones."""

import queue
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self, TypeVar

import anyio.to_thread
import apsw

from holdfast.clock import Clock, SystemClock
from holdfast.errors import StoreError
from holdfast.store.base import Failpoint, no_failpoint
from holdfast.store.examining import Examining
from holdfast.store.files.connections import ReadConnection, WriteConnection
from holdfast.store.files.layout import component
from holdfast.store.files.root import Root
from holdfast.store.host import Host, ThisHost
from holdfast.store.owner import Owner
from holdfast.store.report import Progress, Report
from holdfast.store.sqlite.database import translated, unwritable
from holdfast.store.tables.shell import Shell
from holdfast.store.tables.threads import Job, Worker, submit
from holdfast.store.tables.watch import Wakes

T = TypeVar("T")

READERS = 2


class FilesStore(Shell[WriteConnection, ReadConnection]):
    """See `store.base.Store` for what each method promises."""

    def __init__(self, root: Root, clock: Clock, host: Host, failpoint: Failpoint) -> None:
        self.root = root
        super().__init__(root.path, clock, Wakes(root.index.wake_path, readonly=root.index.readonly))
        self.host = host
        self._writes: queue.SimpleQueue[Job[WriteConnection] | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Job[ReadConnection] | None] = queue.SimpleQueue()
        self._connections: list[WriteConnection | ReadConnection] = []
        self._workers: list[Worker[WriteConnection] | Worker[ReadConnection]] = []
        if not root.index.readonly:
            connection = WriteConnection(root.index, clock, host, failpoint, self._wakes.written)
            writer = Worker(
                "holdfast-files-writer", self._writes, connection.run, group=64, delivered=self._wakes.wake
            )
            self._connections.append(connection)
            self._workers.append(writer)
        for number in range(READERS):
            reader = ReadConnection(root.index, clock, host, failpoint)
            self._connections.append(reader)
            self._workers.append(Worker(f"holdfast-files-reader-{number}", self._reads, reader.run, group=1))
        self._renewing: queue.SimpleQueue[Job[ReadConnection] | None] | None = None

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

    async def write(self, work: Callable[[WriteConnection], T]) -> T:
        """Do something in the writing thread, in its next group."""
        self._check_open()
        if self.root.index.readonly:
            raise unwritable(self.root.path, disk_is_full=self.root.index.disk_is_full)
        return await submit(self._writes, work)

    async def read(self, work: Callable[[ReadConnection], T]) -> T:
        """Do something in a reading thread, with the store held still."""
        self._check_open()
        return await submit(self._reads, work)

    async def register(self, owner: Owner) -> None:
        component(owner.id, "owner")
        await super().register(owner)

    async def renew(self, owner: str) -> None:
        """In a thread of its own, so that no long read of ours can make an owner late."""
        self._check_open()
        if self._renewing is None:
            self._renewing = queue.SimpleQueue()
            connection = ReadConnection(self.root.index, self.clock, self.host)
            self._connections.append(connection)
            self._workers.append(Worker("holdfast-files-renewals", self._renewing, connection.run, group=1))
        await submit(self._renewing, lambda connection: connection.renew(owner))
        self.renewals.note(owner, self.clock.boot_ms())

    async def sweep(self) -> None:
        if not self.root.index.readonly:
            await super().sweep()

    async def examine(self, *, repair: bool = False, progress: Progress | None = None) -> Report:
        from holdfast.store.files.repair.mend import examine

        examining = Examining(progress)
        return await examining.wait(examine(self, examining, repair=repair))

    async def backup(self, path: str) -> None:
        from holdfast.store.files.repair.backup import copy_tree

        await self.read(lambda connection: copy_tree(connection.disk, Path(path)))

    async def _close(self) -> None:
        self._writes.put(None)
        for _ in range(READERS):
            self._reads.put(None)
        if self._renewing is not None:
            self._renewing.put(None)
        async with AsyncExitStack() as rest:  # One that fails does not keep the others open.
            for (
                connection
            ) in self._connections:  # The writer's connection closes last and tidies the log away.
                rest.push_async_callback(anyio.to_thread.run_sync, connection.close)
            rest.callback(self._wakes.close)
            for worker in self._workers:
                await anyio.to_thread.run_sync(worker.join, 30.0)

"""The SQLite store: the async shell over one writing thread and two reading ones."""

import queue
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import anyio.to_thread
import apsw

from holdfast.clock import Clock, SystemClock
from holdfast.errors import StoreBusy
from holdfast.schema.stored import Kind, Mark
from holdfast.store.base import Failpoint, no_failpoint
from holdfast.store.batch import Batch, Receipt
from holdfast.store.examining import Examining
from holdfast.store.host import Host, ThisHost
from holdfast.store.record import Changes, Resync, SessionRecord, StoredRecord
from holdfast.store.report import Progress, Report
from holdfast.store.sqlite.backup import copy_database
from holdfast.store.sqlite.backups import Backups
from holdfast.store.sqlite.connections import ReadConnection, RenewConnection, WriteConnection, failure_of
from holdfast.store.sqlite.database import Database, translated, unwritable
from holdfast.store.sqlite.recent import Recent
from holdfast.store.tables.shell import Shell
from holdfast.store.tables.threads import GROUP_MAX, Job, Worker, submit
from holdfast.store.tables.watch import Wakes

if TYPE_CHECKING:
    from holdfast.store.sqlite.salvage.raw_file import Kept

T = TypeVar("T")
C = TypeVar("C")

READERS = 2
JOIN_S = 30.0
LOOK_FOR_BACKUP_MS = 3600 * 1000
"""How often a process that writes looks whether the daily backup is due."""
INDEX_AT = 1000
"""After so many changes the search index follows, if there is one: a search should not have to wait."""
INDEX_SLICE, INDEX_PAUSE_S = 50, 0.05
"""A little at a time: those who wait for commits come first."""


class SqliteStore(Shell[WriteConnection, ReadConnection]):
    """See `store.base.Store` for what each method promises."""

    def __init__(self, database: Database, clock: Clock, host: Host, failpoint: Failpoint) -> None:
        self.database = database
        self._recent = Recent()
        wakes = Wakes(database.wake_path, self._recent.forget, readonly=database.readonly)
        super().__init__(database.path, clock, wakes)
        self._host = host
        self._writes: queue.SimpleQueue[Job[WriteConnection] | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Job[ReadConnection] | None] = queue.SimpleQueue()
        self._renewing: queue.SimpleQueue[Job[RenewConnection] | None] = queue.SimpleQueue()
        self._renewer: RenewConnection | None = None
        self._unindexed = 0
        self._start_backup: Callable[[Path], None] | None = None
        self._look_for_backup_ms = 0
        self._kept: Kept | None = None
        """What was read beside SQLite, since a store that is examined may be damaged."""
        self._stops: list[Callable[[], None]] = []
        self._joins: list[Callable[[], None]] = []
        with ExitStack() as opened:
            opened.callback(self._wakes.close)
            writer: WriteConnection | None = None
            if not database.readonly:
                written = self._wakes.written
                writer = WriteConnection(database, clock, host, failpoint, written, recent=self._recent)
                opened.callback(writer.close)
            readers = []
            for _ in range(READERS):
                readers.append(ReadConnection(database, clock, host))
                opened.callback(readers[-1].close)
            self._glancing = ReadConnection(database, clock, host, waits=False)
            opened.callback(self._glancing.close)
            if writer is not None:
                self._start(
                    "writer",
                    self._writes,
                    writer.run,
                    group=GROUP_MAX,
                    delivered=self._wakes.wake,
                    after=writer.tidy,
                )
            for reader in readers:
                self._start("reader", self._reads, reader.run)
            # Let go in reverse: the writer's connection closes last and tidies the log away.
            self._connections = opened.pop_all()

    def _start(
        self,
        name: str,
        jobs: "queue.SimpleQueue[Job[C] | None]",
        run: "Callable[[list[Job[C]]], None]",
        *,
        group: int = 1,
        delivered: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        worker = Worker(f"holdfast-{name}", jobs, run, group=group, delivered=delivered, after=after)
        self._stops.append(lambda: jobs.put(None))
        self._joins.append(lambda: worker.join(JOIN_S))

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        clock: Clock | None = None,
        host: Host | None = None,
        failpoint: Failpoint = no_failpoint,
        database: Database | None = None,
        start_backup: Callable[[Path], None] | None = None,
    ) -> Self:
        """Open the store at a path, making it if it is new; `start_backup` see `open_store`."""
        database = database or Database(path)
        try:
            await anyio.to_thread.run_sync(lambda: database.prepare(create=create))
            opened = cls(database, clock or SystemClock(), host or ThisHost(), failpoint)
            opened._start_backup = start_backup
            return opened
        except (apsw.Error, OSError) as error:
            raise failure_of(error, path) from error

    async def write(self, work: Callable[[WriteConnection], T]) -> T:
        self._check_open()
        if self.database.readonly:
            raise unwritable(self.database.path, disk_is_full=self.database.disk_is_full)
        return await submit(self._writes, work)

    async def read(self, work: Callable[[ReadConnection], T]) -> T:
        self._check_open()
        return await submit(self._reads, work)

    async def glance(self, work: Callable[[ReadConnection], T]) -> T:
        """A look at a few rows, on the spot: passing it to a thread takes longer than the look itself.

        Readers of a WAL do not wait for writers. Where one would have to wait all the same, a thread waits.
        """
        self._check_open()
        try:
            return self._glancing.do(work)
        except StoreBusy:
            return await self.read(work)

    async def session(self, id: str) -> SessionRecord | None:
        return await self.glance(lambda connection: connection.reader.session(id))

    async def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        return await self.glance(lambda connection: connection.reader.get(session, kind, id))

    async def select(
        self, kind: Kind, *, session: str | None = None, mark: Mark | None = None
    ) -> Sequence[StoredRecord]:
        # A project has few approvals, and each permission that is asked for looks at them.
        few = session is not None and (mark is not None or kind == "approval")
        look = self.glance if few else self.read
        return await look(lambda connection: connection.reader.select(kind, session, mark))

    async def commit(self, batch: Batch) -> Receipt:
        receipt = await super().commit(batch)
        if self._start_backup is not None and self.clock.boot_ms() >= self._look_for_backup_ms:
            self._look_for_backup_ms = self.clock.boot_ms() + LOOK_FOR_BACKUP_MS
            with suppress(Exception):  # The commit is written, whatever becomes of the backup.
                if Backups(self.database).is_due():
                    self._start_backup(self.database.path.absolute())
        self._unindexed += len(receipt.numbers)
        if self._unindexed >= INDEX_AT:
            self._unindexed = 0
            self._go_on_indexing(records=INDEX_SLICE, pause_s=INDEX_PAUSE_S)
        return receipt

    async def changes(
        self, cursor: str | None, session: str | None = None, *, limit: int = 1000, recent: bool = False
    ) -> Changes | Resync:
        self._check_open()
        known = self._recent.changes(cursor, session, limit) if recent else None
        return await super().changes(cursor, session, limit=limit) if known is None else known

    async def renew(self, owner: str) -> None:
        self._check_open()
        if self._renewer is None:
            self._renewer = RenewConnection(self.database, self.clock, self._host)
            self._connections.callback(self._renewer.close)
            self._start("renewals", self._renewing, self._renewer.run)
        await submit(self._renewing, lambda connection: connection.leases.renew(owner))
        self.renewals.note(owner, self.clock.boot_ms())

    async def sweep(self) -> None:
        if not self.database.readonly:
            await super().sweep()

    async def examine(self, *, repair: bool = False, progress: Progress | None = None) -> Report:
        from holdfast.store.sqlite.examine import examine
        from holdfast.store.sqlite.salvage.raw_file import Kept

        examining = Examining(progress)
        kept = self._kept = self._kept or Kept()

        def work(connection: WriteConnection | ReadConnection) -> Report:
            with examining.statements(connection.db):
                return examine(
                    connection.db,
                    self.database,
                    self.clock,
                    repair=repair,
                    examining=examining,
                    kept=kept,
                )

        return await examining.wait(self.write(work) if repair else self.read(work))

    async def backup(self, path: str) -> None:
        await self.read(lambda connection: copy_database(connection.db, Path(path)))

    async def _close(self) -> None:
        for stop in self._stops:
            stop()
        for join in self._joins:
            await anyio.to_thread.run_sync(join)
        try:
            self._connections.close()
        except apsw.Error as error:  # The last checkpoint failed; what was committed is in the log.
            raise translated(error, self.database.path) from error
        finally:
            if self._kept is not None:
                self._kept.close()

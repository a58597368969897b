"""What one worker thread owns: its connection to the index, the tree, the journal, its place in the queue.

The order of a commit: numbers in the index (not yet committed), one synced journal write, the tree, the
index, the answer. Until the journal is synced nothing has happened; after it everything will have, if need be
by the next to open the store. (To answer right after the sync was tried: it saves nothing when commits
follow each other, and a user who looks into the tree would miss what was just acknowledged.)
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from holdfast.clock import Clock
from holdfast.errors import RecordCorrupt, StoreError
from holdfast.store.base import Failpoint, no_failpoint
from holdfast.store.files.disk import Disk
from holdfast.store.files.index import Index, read_mark, write_mark
from holdfast.store.files.journal import CLOSE_BYTES, TRIM_BYTES, Journal, Mark, payload
from holdfast.store.files.reader import TreeFeed, TreeReader, TreeSearch
from holdfast.store.files.repair.rebuild import rebuild
from holdfast.store.files.repair.recovery import recover, trim
from holdfast.store.files.store_lock import StoreLock
from holdfast.store.files.trace import Trace
from holdfast.store.files.tree_writes import Plan, Written, body_of
from holdfast.store.host import Host
from holdfast.store.query import SearchQuery
from holdfast.store.record import Found
from holdfast.store.sqlite.connections import of_caller
from holdfast.store.sqlite.database import translated
from holdfast.store.tables.leases import Leases
from holdfast.store.tables.search import Name
from holdfast.store.tables.threads import Job, do_in_savepoint
from holdfast.store.tables.writer import Writer


class Connection:
    """What reading and writing threads have in common."""

    db: apsw.Connection
    mark: Mark
    """How far the index had come when `is_ready` last looked; it stays so while the store is held."""

    def __init__(self, index: Index, clock: Clock, host: Host, failpoint: Failpoint = no_failpoint) -> None:
        self.index = index
        self.clock, self.host = clock, host
        self.disk = Disk(index.path.parent, failpoint, readonly=index.readonly)
        self.journal = Journal(self.disk)
        self.lock = StoreLock(index.path.parent, readonly=index.readonly)
        self._identity = 0

    def connect(self) -> None:
        """Open the index again: it is another file than before."""
        self._identity = self.index.identity()

    def is_ready(self) -> bool:
        """Whether the index can be worked with as it is."""
        return self.is_same() and self.has_seen_all()

    def is_same(self) -> bool:
        """Whether the index is the file that we have open."""
        return self._identity != 0 and self._identity == self.index.identity()

    def has_seen_all(self) -> bool:
        """Whether the index has seen everything that is in the journal."""
        try:
            self.mark = read_mark(self.db)
        except (apsw.CorruptError, apsw.NotADBError):
            return False
        return not self.journal.is_begun(self.mark.generation, self.mark.offset)

    def make_ready(self) -> None:
        """Do what was left undone by a process that died or a disk that was full. The store is held alone."""
        if not self.index.is_usable():
            rebuild(self.index, self.disk, self.journal, clock=self.clock, boot=self.host.boot)
        if self._identity != self.index.identity():
            self.disconnect()
            self.connect()
        db = self.index.connect()
        try:
            recover(db, self.disk, self.journal, clock=self.clock, boot=self.host.boot)
        finally:
            db.close()

    def disconnect(self) -> None:
        """Close the index."""
        if self._identity:
            self._identity = 0
            self.db.close()

    def close(self) -> None:
        """Close everything."""
        self.disconnect()
        self.journal.close()
        self.disk.close()
        self.lock.close()


def behind(root: Path) -> StoreError:
    """Why a store that cannot be written cannot be read either."""
    return StoreError(
        f"{root} was not closed as it should be, and can only be put right where it can be written; "
        "copy it to a folder of your own"
    )


class WriteConnection(Connection):
    """The one connection of a process that commits: many jobs, one journal write, one sync."""

    def __init__(
        self,
        index: Index,
        clock: Clock,
        host: Host,
        failpoint: Failpoint,
        written: Callable[[], None],
    ) -> None:
        super().__init__(index, clock, host, failpoint)
        self._written = written
        self._bodies: list[bytes] = []
        self._wrote = self._journaled = False
        self.connect()

    def connect(self) -> None:
        super().connect()
        self.db = self.index.connect()
        self.leases = Leases(self.db, self.clock, self.host)
        self.writer = Writer(self.db, self.clock, self.leases.living, inline=False)
        self._trace = Trace(self.db)

    def rows(self, sql: str, *bindings: object) -> list[Any]:
        """All rows of a query inside the transaction."""
        return self.db.execute(sql, bindings).fetchall()

    def run(self, jobs: "list[Job[WriteConnection]]") -> None:
        """Do the jobs together, alone in the store."""
        try:
            with self.lock.exclusive():
                self._begin()
                mark = self._commit(jobs)
                if mark is not None and mark.offset > TRIM_BYTES:
                    with suppress(OSError, apsw.Error):  # The commits stand; the next one tries again.
                        trim(self.db, self.disk, self.journal, self.host.boot)
        except apsw.Error as error:
            raise translated(error, self.index.path, writing=True) from error
        except OSError as error:
            raise StoreError(f"{self.disk.root} could not be written: {error}") from error
        if any(job.error is None for job in jobs):
            self._written()

    def _begin(self) -> None:
        """Begin the transaction, in an index that has seen everything."""
        while True:
            if self.is_same():
                self.disk.step("begin")
                self.db.execute("BEGIN IMMEDIATE")
                if self.has_seen_all():
                    return
                self.db.execute("ROLLBACK")
            self.make_ready()

    def _commit(self, jobs: "list[Job[WriteConnection]]") -> Mark | None:
        self._journaled = False
        try:
            self.writer.begin()
            written, alone = self.writer.written, len(jobs) == 1
            for job in jobs:
                do_in_savepoint(
                    self, self.db, written, job, alone=alone, done=self._keep_bodies, failure=of_caller
                )
            mark = self._make_durable()
            self.disk.step("index commit")
            self.db.execute("COMMIT")
        except BaseException as error:
            if not self.db.get_autocommit():
                self.db.execute("ROLLBACK")
            if self._journaled and isinstance(error, (OSError, apsw.Error)):
                return None  # It is in the journal: the next writer, with room, writes the tree.
            raise
        finally:
            self._bodies.clear()
        return mark

    def _keep_bodies(self, count: int) -> None:
        self._bodies += [body_of(record) for record in self.writer.written[count:]]

    def _make_durable(self) -> Mark | None:
        """Journal, then tree; None when nothing changed."""
        written: list[Written] = list(zip(self.writer.written, self._bodies, strict=True))
        traces = self._trace.read()
        if not written and traces is None:
            return None
        plan = Plan(self.db, self.disk, self.writer.revived)
        plan.make(written, traces)
        if not plan.files and not plan.gone:
            return None
        mark = self.mark
        offset = self.journal.write(mark.generation, mark.offset, payload(plan.files, plan.gone))
        self._wrote = self._journaled = True
        plan.carry_out()
        mark = Mark(mark.generation, offset, mark.boot)
        write_mark(self.db, mark)
        return mark

    def close(self) -> None:
        """Trim the journal if that is worth it, then close everything."""
        try:
            if self._wrote and self._identity:
                with suppress(StoreError, OSError, apsw.Error), self.lock.exclusive():
                    if self.is_ready() and self.mark.offset > CLOSE_BYTES:
                        trim(self.db, self.disk, self.journal, self.host.boot)
        finally:
            super().close()


class ReadConnection(Connection):
    """A connection that reads, one snapshot a job."""

    def __init__(self, index: Index, clock: Clock, host: Host, failpoint: Failpoint = no_failpoint) -> None:
        super().__init__(index, clock, host, failpoint)
        self._search: TreeSearch | None = None
        self._renewing: apsw.Connection | None = None
        self.connect()

    def connect(self) -> None:
        super().connect()
        self.db = self.index.connect(readonly=True)
        self.leases = Leases(self.db, self.clock, self.host)
        self.reader = TreeReader(self.db, self.leases.living, self.disk)
        self.feed = TreeFeed(self.db, self.disk)

    def run(self, jobs: "list[Job[ReadConnection]]") -> None:
        """Do each job with the store held still, which ends before anything is awaited."""
        for job in jobs:
            try:
                self._run(job)
            except apsw.Error as error:
                job.error = translated(error, self.index.path)
            except OSError as error:
                job.error = StoreError(f"{self.disk.root} could not be used: {error}")
            except Exception as error:  # noqa: BLE001 - it belongs to the job
                job.error = of_caller(error)

    def _run(self, job: "Job[ReadConnection]") -> None:
        while True:
            with self.lock.shared():
                if self.is_ready():
                    self.db.execute("BEGIN")
                    try:
                        job.result = job.work(self)
                    finally:
                        self.db.execute("ROLLBACK")
                    return
            if self.index.readonly:
                raise behind(self.disk.root)
            with self.lock.exclusive():
                if not self.is_ready():
                    self.make_ready()

    def search(self, query: SearchQuery) -> Found:
        """Bring the search index up to date, then ask it. It has a connection of its own."""
        return self._index_of_words().search(query, self._searched)

    def forget_words(self, names: Sequence[Name]) -> None:
        """Drop what was removed from the search index, if there is one because of a search."""
        if self.index.search_path.exists():
            self._index_of_words().forget(names)

    def keep_indexed(self, *, records: int) -> bool:
        """Let the search index follow, if there is one because of a search; whether nothing is left."""
        return not self.index.search_path.exists() or self._index_of_words().catch_up(records=records)

    def _index_of_words(self) -> TreeSearch:
        if self._search is None:
            self._search = TreeSearch(self.index, self.disk)
        return self._search

    def drop_search(self) -> None:
        """Throw the search index away; it comes back with the next search."""
        if self._search is not None:
            self._search.close()
            self._search = None
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.index.search_path}{suffix}").unlink(missing_ok=True)

    def _searched(self, session: str, kind: str, id: str) -> bytes:
        try:
            record = self.reader.get(session, "part" if kind == "part" else "session", id)
        except RecordCorrupt:
            return b"{}"
        return b"{}" if record is None else record.data

    def renew(self, owner: str) -> None:
        """Renew in the index alone: a lease need not survive a power cut."""
        if self._renewing is None:
            self._renewing = self.index.connect()
        Leases(self._renewing, self.clock, self.host).renew(owner)

    def disconnect(self) -> None:
        if self._search is not None:
            self._search.close()
            self._search = None
        if self._renewing is not None:
            self._renewing.close()
            self._renewing = None
        super().disconnect()

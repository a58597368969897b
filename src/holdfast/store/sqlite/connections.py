"""The connection that one worker thread owns, with the reader or writer bound to it."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from holdfast.clock import Clock
from holdfast.errors import InvalidInput, StoreBusy, StoreError
from holdfast.file_lock import FileLock
from holdfast.store.base import Failpoint
from holdfast.store.host import Host
from holdfast.store.query import SearchQuery
from holdfast.store.record import Found
from holdfast.store.sqlite.database import Database, translated
from holdfast.store.sqlite.identity import identify
from holdfast.store.sqlite.recent import Recent
from holdfast.store.tables.connection import set_pragmas
from holdfast.store.tables.feed import Feed
from holdfast.store.tables.leases import Leases
from holdfast.store.tables.reader import Reader
from holdfast.store.tables.search import Name, Search
from holdfast.store.tables.threads import Job, do_in_savepoint
from holdfast.store.tables.writer import Writer

T = TypeVar("T")

LOG_PAGES = 1_000
READINGS = 3
"""How often a thing is read at most that another user writes meanwhile, and that cannot be locked."""


class WriteConnection:
    """The one connection that commits: many jobs, one transaction, one sync."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        host: Host,
        failpoint: Failpoint,
        written: Callable[[], None],
        *,
        recent: Recent,
    ) -> None:
        self.db = database.connect()
        self.leases = Leases(self.db, clock, host)
        self.writer = Writer(self.db, clock, self.leases.living)
        self._path = database.path
        self._queue = FileLock(database.lock_path)
        self._failpoint = failpoint
        self._written = written
        self._recent = recent
        # A hook of our own takes the place of SQLite's automatic checkpoint (see `tidy`).
        self._log_pages = 0
        self.db.set_wal_hook(self._logged)

    def _logged(self, db: apsw.Connection, name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def tidy(self) -> None:
        """Move a long log into the file, as SQLite would, but after the commit that made it long is answered.

        A failure leaves the log as it is, and the next commit tries again.
        """
        if self._log_pages >= LOG_PAGES:
            with contextlib.suppress(apsw.Error):
                self.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def rows(self, sql: str, *bindings: object) -> list[Any]:
        """All rows of a query inside the transaction."""
        return self.db.execute(sql, bindings).fetchall()

    def run(self, jobs: "list[Job[WriteConnection]]") -> None:
        """Do the jobs in one transaction. The file lock is only a fair queue: SQLite keeps them apart."""
        with self._queue:
            try:
                self._failpoint("begin")
                self.db.execute("BEGIN IMMEDIATE")
                try:
                    self.writer.begin()
                    written, alone = self.writer.written, len(jobs) == 1
                    for job in jobs:
                        do_in_savepoint(self, self.db, written, job, alone=alone, failure=self._failure)
                    self._failpoint("commit")
                    self.db.execute("COMMIT")
                except BaseException:
                    if not self.db.get_autocommit():
                        self.db.execute("ROLLBACK")
                    raise
            except apsw.Error as error:
                raise translated(error, self._path, writing=True) from error
        self._remember()
        if any(job.error is None for job in jobs):
            self._written()
        self._failpoint("committed")

    def _failure(self, error: Exception) -> Exception:
        return failure_of(error, self._path, writing=True)

    def _remember(self) -> None:
        if self.writer.removes or self.writer.copied:
            self._recent.forget()
        elif self.writer.written:
            self._recent.add(self.writer.incarnation, self.writer.start, self.writer.keyed())

    def close(self) -> None:
        """Close the connection."""
        try:
            self.db.close()
        finally:
            self._queue.close()


class ReadConnection:
    """A connection that reads, one snapshot a job.

    A user who may not write can take no lock of a store without a log. What its owner writes there is noticed
    by the file, and then it is opened anew.
    """

    def __init__(self, database: Database, clock: Clock, host: Host, *, waits: bool = True) -> None:
        self._database, self._clock, self._host = database, clock, host
        self._waits = waits
        self._search: Search | None = None
        self._open()

    def _open(self) -> None:
        seen = identify(self._database) if self._database.readonly else None
        self.db = self._database.connect(readonly=True)
        if not self._waits:
            self.db.set_busy_timeout(0)
        self._unlocked = seen if self.db.open_flags & apsw.SQLITE_OPEN_URI else None
        self._leases = Leases(self.db, self._clock, self._host)
        self.reader = Reader(self.db, self._leases.living)
        self.feed = Feed(self.db)

    def run(self, jobs: "list[Job[ReadConnection]]") -> None:
        """Do each job inside one read transaction, which ends before anything is awaited."""
        for job in jobs:
            try:
                job.result = self.do(job.work)
            except Exception as error:  # noqa: BLE001 - it belongs to the job
                job.error = error

    def do(self, work: "Callable[[ReadConnection], T]") -> T:
        """Do one thing in one snapshot."""
        for _ in range(READINGS):
            if self._is_outdated():
                self.close()
                self._search = None
                self._open()
            try:
                found = self._do(work)
            except StoreError:
                if not self._is_outdated():
                    raise
            else:
                if not self._is_outdated():
                    return found
        raise StoreBusy(f"{self._database.path} was written by another user while it was read; try again")

    def _is_outdated(self) -> bool:
        """Whether the file that was opened without a lock has been written since, or has a log now."""
        return self._unlocked is not None and identify(self._database) != self._unlocked

    def _do(self, work: "Callable[[ReadConnection], T]") -> T:
        try:
            self.db.execute("BEGIN")
            try:
                return work(self)
            finally:
                self.db.execute("ROLLBACK")
        except Exception as error:
            raise failure_of(error, self._database.path) from error

    def search(self, query: SearchQuery) -> Found:
        """Bring the index up to date, then ask it."""
        return self._index().search(query)

    def forget_words(self, names: Sequence[Name]) -> None:
        """Drop what was removed from the index, if there is one because of a search."""
        if self._database.search_path.exists():
            self._index().forget(names)

    def keep_indexed(self, *, records: int) -> bool:
        """Let the index follow, if there is one because of a search; whether nothing is left."""
        return not self._database.search_path.exists() or self._index().catch_up(records=records)

    def _index(self) -> Search:
        """The index, which has connections of its own."""
        if self._search is None:
            self._search = Search(self._database)
        return self._search

    def close(self) -> None:
        """Close the connections."""
        try:
            if self._search is not None:
                self._search.close()
        finally:
            self.db.close()


class RenewConnection:
    """A connection that moves deadlines, without waiting for the disk: a lease need not survive a power cut.

    NORMAL, not OFF: a connection with OFF may run a checkpoint without a sync and lose other commits. It has
    a thread of its own, so that no long read can make an owner late.
    """

    def __init__(self, database: Database, clock: Clock, host: Host) -> None:
        self._db = database.connect()
        self._path = database.path
        self.leases = Leases(self._db, clock, host)
        set_pragmas(self._db, "synchronous=NORMAL")

    def run(self, jobs: "list[Job[RenewConnection]]") -> None:
        """Do each job by itself."""
        for job in jobs:
            try:
                job.result = job.work(self)
            except Exception as error:  # noqa: BLE001 - it belongs to the job
                job.error = failure_of(error, self._path)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def failure_of(error: Exception, path: Path, *, writing: bool = False) -> Exception:
    """An error as the caller gets it: SQLite's and the system's in our own terms."""
    match error:
        case apsw.Error():
            return translated(error, path, writing=writing)
        case OSError():
            return StoreError(f"{error.filename or path}: {error.strerror or error}")
        case _:
            return of_caller(error)


def of_caller(error: Exception) -> Exception:
    """SQLite takes only valid Unicode; a lone surrogate in what was asked is the caller's mistake."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput("the text holds a lone surrogate, which is not valid Unicode; remove it")
    if isinstance(error, OverflowError):
        return InvalidInput("a number is too large to be stored")
    return error

"""What a thread holds: its connection and the rooms' functions bound to it."""

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from holdfast.clock import Clock
from holdfast.errors import InvalidInput
from holdfast.store.base import Failpoint
from holdfast.store.host import Host
from holdfast.store.lock import FileLock
from holdfast.store.query import SearchQuery
from holdfast.store.record import Hit
from holdfast.store.sqlite.changes import Feed
from holdfast.store.sqlite.database import Database, translated
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.reader import Reader
from holdfast.store.sqlite.search import Search
from holdfast.store.sqlite.threads import Job
from holdfast.store.sqlite.writer import Writer


class WritingHand:
    """The one connection that commits: many jobs, one transaction, one sync."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        host: Host,
        failpoint: Failpoint,
        written: Callable[[], None],
    ) -> None:
        self.db = database.connect()
        self.leases = Leases(self.db, clock, host)
        self.writer = Writer(self.db, clock, self.leases.living)
        self._path = database.path
        self._queue = FileLock(database.lock_path)
        self._failpoint = failpoint
        self._written = written

    def rows(self, sql: str, *bindings: object) -> list[Any]:
        """All rows of a query inside the transaction."""
        return self.db.execute(sql, bindings).fetchall()

    def run(self, jobs: "list[Job[WritingHand]]") -> None:
        """Do the jobs in one transaction. The file lock is only a fair queue: SQLite keeps them apart."""
        with self._queue:
            try:
                self._failpoint("begin")
                self.db.execute("BEGIN IMMEDIATE")
                try:
                    self.writer.begin()
                    alone = len(jobs) == 1
                    for job in jobs:
                        self._do(job, alone=alone)
                    self._failpoint("commit")
                    self.db.execute("COMMIT")
                except BaseException:
                    if not self.db.get_autocommit():
                        self.db.execute("ROLLBACK")
                    raise
            except apsw.Error as error:
                raise translated(error, self._path) from error
        if any(job.error is None for job in jobs):
            self._written()
        self._failpoint("committed")

    def _do(self, job: "Job[WritingHand]", *, alone: bool) -> None:
        """One job in a savepoint of its own; alone, the transaction itself is enough."""
        if alone:
            try:
                job.result = job.work(self)
            except Exception as error:  # noqa: BLE001 - it belongs to the job; the transaction is undone
                job.error = of_caller(error)
                self.db.execute("ROLLBACK")
                self.db.execute("BEGIN IMMEDIATE")
            return
        self.db.execute("SAVEPOINT job")
        try:
            job.result = job.work(self)
        except Exception as error:  # noqa: BLE001 - it belongs to this job alone
            job.error = of_caller(error)
            self.db.execute("ROLLBACK TO job")
        self.db.execute("RELEASE job")

    def close(self) -> None:
        """Close the connection."""
        self.db.close()
        self._queue.close()


def of_caller(error: Exception) -> Exception:
    """SQLite takes only valid Unicode; a lone surrogate in what was asked is the caller's mistake."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput("the text holds a lone surrogate, which is not valid Unicode; remove it")
    return error


class ReadingHand:
    """A connection that reads, one snapshot a job."""

    def __init__(self, database: Database, clock: Clock, host: Host) -> None:
        self.db = database.connect(readonly=True)
        self._database = database
        self._clock, self._host = clock, host
        self._leases = Leases(self.db, clock, host)
        self.reader = Reader(self.db, self._leases.living)
        self.feed = Feed(self.db)
        self._search: Search | None = None
        self._renewing: apsw.Connection | None = None

    def run(self, jobs: "list[Job[ReadingHand]]") -> None:
        """Do each job inside one read transaction, which ends before anything is awaited."""
        for job in jobs:
            try:
                self.db.execute("BEGIN")
                try:
                    job.result = job.work(self)
                finally:
                    self.db.execute("ROLLBACK")
            except apsw.Error as error:
                job.error = translated(error, self._database.path)
            except Exception as error:  # noqa: BLE001 - it belongs to the job
                job.error = of_caller(error)

    def search(self, query: SearchQuery) -> Sequence[Hit]:
        """Bring the index up to date, then ask it."""
        return self._index().search(query)

    def keep_indexed(self) -> None:
        """Let the index follow for a while, if anybody has ever searched."""
        if self._database.search_path.exists():
            self._index().catch_up(chunks=4)

    def _index(self) -> Search:
        """The index, which has connections of its own."""
        if self._search is None:
            self._search = Search(self._database)
        return self._search

    def renew(self, owner: str) -> None:
        """Renew without waiting for the disk: a lease need not survive a power cut.

        NORMAL, not OFF: a connection with OFF may run a checkpoint without a sync and lose other commits.
        """
        if self._renewing is None:
            self._renewing = self._database.connect()
            self._renewing.execute("PRAGMA synchronous=NORMAL")
        Leases(self._renewing, self._clock, self._host).renew(owner)

    def close(self) -> None:
        """Close the connections."""
        if self._search is not None:
            self._search.close()
        if self._renewing is not None:
            self._renewing.close()
        self.db.close()

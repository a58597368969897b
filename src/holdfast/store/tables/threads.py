"""Threads that hold connections: one that writes, with group commit, and a few that read.

A commit waits for the disk, so it must not stand in the event loop. Jobs that queue up while the writer
syncs share its next transaction; each has a savepoint of its own, so that one may fail alone.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.store.tables.connection import Connection

T = TypeVar("T")
C = TypeVar("C")

GROUP_MAX = 64


class Job(Generic[C]):
    """Something to do with a thread's connection, and the future of its result."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Callable[[C], object], future: "asyncio.Future[object]") -> None:
        self.work = work
        self.future = future
        self.result: object = None
        self.error: BaseException | None = None


class Worker(Generic[C]):
    """A daemon thread that takes jobs from a queue, several at a time, and delivers each group at once.

    `delivered` is called in the event loop once the callers have their results; `after` is what the thread
    does meanwhile. They must not fail.
    """

    def __init__(
        self,
        name: str,
        queue_: "queue.SimpleQueue[Job[C] | None]",
        run: Callable[[list[Job[C]]], None],
        *,
        group: int,
        delivered: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue = queue_
        self._run = run
        self._group = group
        self._delivered = delivered
        self._after = after
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def _main(self) -> None:
        while (first := self._queue.get()) is not None:
            jobs = [first]
            ended = False
            while len(jobs) < self._group:
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    ended = True
                    break
                jobs.append(job)
            try:
                self._run(jobs)
            except BaseException as error:  # noqa: BLE001 - it must reach the callers, whatever it is
                for job in jobs:
                    job.error = job.error or error
            try:
                self._loop.call_soon_threadsafe(self._deliver, jobs)
            except RuntimeError:  # The loop was closed: no caller waits any more.
                return
            self._after()
            if ended:
                return

    def _deliver(self, jobs: "list[Job[C]]") -> None:
        deliver(jobs)
        self._delivered()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)


def deliver(jobs: "list[Job[C]]") -> None:
    """Give the callers their results, in the event loop."""
    for job in jobs:
        if job.future.done():  # Cancelled while waiting: the work itself stands.
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def submit(queue_: "queue.SimpleQueue[Job[C] | None]", work: Callable[[C], T]) -> "asyncio.Future[T]":
    """Queue a job and answer what to wait for."""
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    queue_.put(Job(work, future))
    return future  # type: ignore[return-value]


def do_in_savepoint(
    connection: C,
    db: Connection,
    written: list[Any],
    job: "Job[C]",
    *,
    alone: bool,
    done: Callable[[int], None] = lambda _: None,
    failure: Callable[[Exception], Exception],
) -> None:
    """One job in a savepoint of its own; alone, the transaction itself is enough.

    `done` is called with the number of records `written` before the job; if it raises, the job has failed.
    """
    if not alone:
        db.execute("SAVEPOINT job")
    count = len(written)
    try:
        job.result = job.work(connection)
        done(count)
    except Exception as error:  # noqa: BLE001 - it belongs to this job alone
        job.error = failure(error)
        del written[count:]
        db.execute("ROLLBACK; BEGIN IMMEDIATE" if alone else "ROLLBACK TO job")
    if not alone:
        db.execute("RELEASE job")

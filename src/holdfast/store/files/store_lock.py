"""The store's lock between processes: readers together, a writer alone, none starved.

Two lock files. Each passes `queue` first. A writer keeps it while it waits for the readers inside to
leave, so that no new reader slips in before it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.file_lock import FileLock


class StoreLock:
    """One holder's handle: each thread has its own, since locks belong to handles."""

    def __init__(self, root: Path, *, readonly: bool = False) -> None:
        self._queue = FileLock(root / "queue", readonly=readonly)
        self._lock = FileLock(root / "lock", readonly=readonly)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Alone; `StoreBusy` when that could not be had in time."""
        with self._queue:
            self._lock.acquire()
            try:
                yield
            finally:
                self._lock.release()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """With other readers."""
        self._queue.acquire(shared=True)
        try:
            self._lock.acquire(shared=True)
        finally:
            self._queue.release()
        try:
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        """Release whatever is held."""
        self._queue.close()
        self._lock.close()

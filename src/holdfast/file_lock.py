"""A lock between processes: `flock` on a file of its own, shared or exclusive, with a bound on the wait."""

import fcntl
import os
import random
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.errors import StoreBusy
from holdfast.person.private import give_to_user

WAIT_S = 10.0


class FileLock:
    """One handle on the lock file. Not reentrant; a crash of the holder frees it.

    `readonly` ones make no file: where there is none that could be opened, there is nothing to wait for.
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        flags = os.O_RDONLY if readonly else os.O_RDWR | os.O_CREAT
        self._fd: int | None = None
        with suppress(*((FileNotFoundError, PermissionError) if readonly else ())):
            self._fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
            if not readonly:
                give_to_user(self._fd)
        self._path = path

    def acquire(self, *, shared: bool = False, wait_s: float = WAIT_S) -> None:
        """Take the lock; `StoreBusy` when it could not be had in time.

        A blocking `flock` has no time limit, so contenders ask again after short random pauses. Measured
        with 20 processes this is as fair as the kernel's own queue.
        """
        if self._fd is None:
            return
        mode = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        give_up = 0.0
        while True:
            try:
                fcntl.flock(self._fd, mode)
            except BlockingIOError:
                now = time.monotonic()
                give_up = give_up or now + wait_s
                if now > give_up:
                    raise StoreBusy(
                        f"{self._path} has been locked by another process for {wait_s:.0f} s; try again"
                    ) from None
                time.sleep(random.uniform(0.0001, 0.001))  # noqa: S311 - a pause, not a secret
            else:
                return

    def release(self) -> None:
        """Give the lock back."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the handle, which also gives the lock back."""
        if self._fd is not None:
            os.close(self._fd)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

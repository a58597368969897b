"""The log file: many processes append to it, and the process that finds it full moves it aside.

One process at a time, under a lock: so a line is whole and in one of the files, and the files together stay
below `(kept + 1) * bytes_max`. What must stay true: nothing here raises, or waits longer than `WAIT_S`; a
process that is stopped with the lock costs the others one such wait each ten seconds, and no line.
"""

import fcntl
import os
import random
import stat
import time
from pathlib import Path
from typing import Final

from holdfast.person.private import give_to_user, make_folder

BYTES_MAX: Final = 4 * 1024 * 1024
KEPT: Final = 3
WAIT_S: Final = 1.0
PATIENT_AGAIN_S: Final = 10.0
BEYOND: Final = 2
"""How many times its size a file that cannot be moved may have; then lines are dropped."""


class LogFile:
    """One process's hold on the file; opened by its first line. Not for several threads at once."""

    def __init__(self, path: Path, *, bytes_max: int = BYTES_MAX, kept: int = KEPT) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._kept = kept
        self._fd = self._lock = -1
        self._pid = 0
        self._patient_from = 0.0

    def append(self, line: bytes) -> bool:
        """Append a line with its end; False where it could not be written: disk full, folder not ours."""
        try:
            self._open_lock()
            held = self._take()
            try:
                size = self._open_current()
                if held and size and size + len(line) > self._bytes_max:
                    size = self._move_aside()
                if size + len(line) > BEYOND * self._bytes_max:
                    return False
                return os.write(self._fd, line) == len(line)
            finally:
                if held:
                    fcntl.flock(self._lock, fcntl.LOCK_UN)
        except OSError:
            self.close()
            return False

    def close(self) -> None:
        """Close what is open; the next line opens it again."""
        for fd in (self._fd, self._lock):
            if fd >= 0 and self._pid == os.getpid():
                os.close(fd)
        self._fd = self._lock = -1

    def _open_lock(self) -> None:
        if self._pid != os.getpid():  # A fork shares the locks of its parent.
            self._fd = self._lock = -1
            self._pid = os.getpid()
        if self._lock < 0:
            make_folder(self.path.parent)
            beside = self.path.with_name(f"{self.path.name}.lock")
            self._lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            give_to_user(self._lock)

    def _open_current(self) -> int:
        """Open the file that has the name now, unless it is open; its size."""
        try:
            found = self.path.stat()
            if self._fd >= 0 and os.path.samestat(found, os.fstat(self._fd)):
                return found.st_size
        except FileNotFoundError:
            pass
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        # O_NONBLOCK: a FIFO of that name must not hold the process.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._fd = os.open(self.path, flags, 0o600)
        opened = os.fstat(self._fd)
        if not stat.S_ISREG(opened.st_mode):
            raise OSError("no regular file")
        if stat.S_IMODE(opened.st_mode) != 0o600:
            os.fchmod(self._fd, 0o600)
        return opened.st_size

    def _move_aside(self) -> int:
        """Give the full file another name; the size of the file that is written to now."""
        for number in range(self._kept, 0, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        return self._open_current()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path

    def _take(self) -> bool:
        """Take the lock; False where it could not be had in time, and the line is appended without it."""
        now = time.monotonic()
        is_patient = now >= self._patient_from
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not is_patient:
                    return False
                if time.monotonic() > now + WAIT_S:
                    self._patient_from = time.monotonic() + PATIENT_AGAIN_S
                    return False
                time.sleep(random.uniform(0.00005, 0.0005))  # noqa: S311 - a pause, not a secret
            else:
                return True

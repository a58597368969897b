"""Reads the log of a store that may be in use. Nothing is opened: the first connection to a store, and the
last that is closed, drop what stands behind damage in the log.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.store.sqlite.salvage.frames import HEADER
from holdfast.store.sqlite.salvage.log import extent, is_without_commits, read_log

READINGS = 5


class LogFile:
    """A log that is read piece by piece, since there may be hundreds of megabytes that were never committed.

    Not mapped into memory: another process may cut it off at any time, which would end this one. What is gone
    by then reads as zeros.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._size = os.fstat(fd).st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> bytes:
        begin, end, _ = part.indices(self._size)
        return os.pread(self._fd, end - begin, begin).ljust(end - begin, b"\0")


@contextmanager
def opened_log(path: Path) -> Iterator[LogFile]:
    """A log, to be read piece by piece."""
    with path.open("rb", buffering=0) as file:
        yield LogFile(file.fileno())


def log_trouble(path: Path) -> str:
    """What is wrong with a log, if an acknowledged commit stands behind it; empty when nothing is."""
    try:
        log = read_log(log_bytes(path))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    return "" if log is None else log.trouble


def left_in_log(path: Path) -> str:
    """What would go with a log of which the file is gone; empty when it holds nothing for certain."""
    try:
        with opened_log(path) as data:
            if is_without_commits(data):
                return ""
            return "its log holds what was committed last" if extent(data) else "its log cannot be read"
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def log_bytes(path: Path) -> bytes:
    """The log up to its last commit, as it is at one moment.

    One that changes as it is read (leases are renewed without the lock) can look damaged: then it is read
    again, until two readings show the same damage.
    """
    data, before = b"", tuple[object, ...]()
    try:
        for _ in range(READINGS):
            data = b""  # Two copies of a long log would be one too many.
            data = _reading(path)
            log = read_log(data)
            damaged = (data[:HEADER], *log.damaged) if log is not None and log.damaged else ()
            if damaged == before:
                break
            before = damaged
    except FileNotFoundError:
        return b""
    return data


def _reading(path: Path) -> bytes:
    with opened_log(path) as data:
        return data[: extent(data)]

"""Reads a file of a store as it lies on the disk, also one that the disk does not give whole.

Not mapped into memory: another process may cut a log off at any time, and a sector may be unreadable; either
would end this process by a signal.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECTOR = 512


class RawFile:
    """A file that is read piece by piece: of a log there may be hundreds of megabytes never committed.

    What was cut off meanwhile, and what cannot be read, reads as zeros.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self._unreadable: set[int] = set()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> bytes:
        begin, end, _ = part.indices(self._size)
        return self._read(begin, end).ljust(end - begin, b"\0")

    @property
    def unreadable(self) -> int:
        """How many bytes of what was asked for the disk has not given."""
        return len(self._unreadable) * SECTOR

    def _read(self, begin: int, end: int) -> bytes:
        try:
            return os.pread(self._fd, end - begin, begin)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        # The half that is at fault is halved again: all the rest comes in large pieces.
        middle = (begin + end) // 2 // SECTOR * SECTOR
        if middle <= begin and begin // SECTOR == (end - 1) // SECTOR:
            self._unreadable.add(begin // SECTOR)
            return bytes(end - begin)
        middle = max(middle, (begin // SECTOR + 1) * SECTOR)
        return self._read(begin, middle).ljust(middle - begin, b"\0") + self._read(middle, end)


@contextmanager
def opened_raw(path: Path) -> Iterator[RawFile]:
    """A file, to be read piece by piece."""
    with path.open("rb", buffering=0) as file:
        yield RawFile(file.fileno())


def copy_raw(source: Path, target: Path) -> int:
    """Copy a file as far as it can be read, into one that is there; how many bytes could not be."""
    piece = 1 << 20
    with opened_raw(source) as data, target.open("r+b") as copy:
        for begin in range(0, len(data), piece):
            copy.write(data[begin : begin + piece])
        return data.unreadable

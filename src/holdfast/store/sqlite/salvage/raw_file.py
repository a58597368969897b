"""Reads a file of a store as it lies on the disk, also one that the disk does not give whole.

Not mapped into memory: another process may cut a log off at any time, and a sector may be unreadable; either
would end this process by a signal.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

SECTOR = 512
PIECE = 1 << 20


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
        with suppress(OSError):  # As a rule all of it comes at once, and is not copied.
            if len(whole := os.pread(self._fd, end - begin, begin)) == end - begin:
                return whole
        return self._in_pieces(begin, end)

    def _in_pieces(self, begin: int, end: int) -> bytes:
        """What can be had. The system stops in front of a bad page, and refuses what begins in it."""
        found, size = bytearray(), PIECE
        while len(found) < end - begin:
            at = begin + len(found)
            try:
                piece = os.pread(self._fd, min(size, end - at), at)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                left = SECTOR - at % SECTOR
                if size > left:  # A sector at a time, until one can be read again.
                    size = left
                    continue
                self._unreadable.add(at // SECTOR)
                piece = bytes(min(left, end - at))
                size = SECTOR
            else:
                size = min(2 * size, PIECE)
            if not piece:
                break
            found += piece
        return bytes(found.ljust(end - begin, b"\0"))

    @property
    def unreadable(self) -> int:
        """How many bytes of what was asked for the disk has not given."""
        return len(self._unreadable) * SECTOR


class Kept:
    """Files that are read raw and stay open until this is closed, each once, however often it is read.

    For files that SQLite has open here too: the close of any descriptor gives up the locks that it has.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[int, int], FileIO] = {}

    def raw(self, path: Path) -> RawFile:
        """The file that is under the name now."""
        found = path.stat()
        key = found.st_dev, found.st_ino
        if key not in self._files:
            # Not the same one, if it gives way to another just now: then one is kept for nothing.
            self._files[key] = path.open("rb", buffering=0)
        return RawFile(self._files[key].fileno())

    def close(self) -> None:
        """Only when SQLite has closed them."""
        while self._files:
            self._files.popitem()[1].close()


@contextmanager
def opened_raw(path: Path) -> Iterator[RawFile]:
    """A file, to be read piece by piece."""
    with path.open("rb", buffering=0) as file:
        yield RawFile(file.fileno())


def copy_raw(source: Path, target: Path) -> int:
    """Copy a file as far as it can be read, into one that is there; how many bytes could not be."""
    with opened_raw(source) as data, target.open("r+b") as copy:
        for begin in range(0, len(data), PIECE):
            copy.write(data[begin : begin + PIECE])
        return data.unreadable

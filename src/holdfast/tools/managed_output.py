"""Managed Tool Output Files: complete texts that were too large for Session history, kept for a while.

They lie in one flat folder that belongs to the user alone, under names that cannot be guessed. What must
stay true: a path is given only when the whole text is on disk; a text that cannot be kept is a diagnostic for
the operator and None for the caller, never an error of the tool; the sweep removes nothing but old
files of ours.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import anyio.to_thread

from holdfast.clock import Clock
from holdfast.person.private import make_folder
from holdfast.schema.ids import Mint

RETENTION_MS = 7 * 24 * 60 * 60 * 1000
FILE_BYTES_MAX = 256 << 20
SWEEP_ENTRIES_MAX = 100_000

_NAME = re.compile(r"tool_[0-9A-Za-z]{20,60}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KEPT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ManagedOutput:
    """The folder of kept texts. `trouble` is called with one line for what could not be kept or removed."""

    def __init__(
        self, folder: Path, clock: Clock, *, trouble: Callable[[str], None] = lambda _: None
    ) -> None:
        self.folder = folder.absolute()
        self._clock = clock
        self._mint = Mint(clock)
        self._trouble = trouble

    async def keep(self, text: str) -> str | None:
        """Store a complete text: on disk before its path is answered."""
        try:
            return await anyio.to_thread.run_sync(self._keep, text)
        except OSError as error:
            self._trouble(f"tool output could not be kept in {self.folder}: {error.strerror or error}")
            return None

    def create(self) -> "OutputFile":
        """A file for a text that comes in pieces; `OSError` where there can be none. It blocks."""
        make_folder(self.folder)
        folder = os.open(self.folder, _FOLDER)
        try:
            _make_private(folder)
            name = self._mint.ascending("tool")
            fd = os.open(name, _NEW, 0o600, dir_fd=folder)
            os.fchmod(fd, 0o600)
            os.fsync(folder)
        finally:
            os.close(folder)
        return OutputFile(str(self.folder / name), fd)

    async def sweep(self, older_than_ms: int = RETENTION_MS) -> int:
        """Remove the files whose time is over; answers how many. What is left waits for the next sweep."""
        try:
            return await anyio.to_thread.run_sync(self._sweep, self._clock.now_ms() - older_than_ms)
        except FileNotFoundError:
            return 0
        except OSError as error:
            self._trouble(f"old tool output in {self.folder} cannot be removed: {error.strerror or error}")
            return 0

    def is_managed(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path names a file of ours, also through a link to the folder; it may have expired."""
        text = os.fspath(path)
        if "\0" in text or not _NAME.fullmatch(os.path.basename(text)):  # noqa: PTH119 - keeps a last slash
            return False
        return os.path.realpath(os.path.dirname(text)) == os.path.realpath(self.folder)  # noqa: PTH120

    def open(self, path: str | os.PathLike[str]) -> BinaryIO | None:
        """A kept text, to be read; None when it is not ours, or has expired."""
        if not self.is_managed(path):
            return None
        try:
            fd = os.open(self.folder / Path(path).name, _KEPT)
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return None
        return os.fdopen(fd, "rb")

    def _keep(self, text: str) -> str:
        data = text.encode("utf-8", "replace")
        if len(data) > FILE_BYTES_MAX:
            raise OSError(f"{len(data)} bytes are more than the {FILE_BYTES_MAX} that one file may have")
        make_folder(self.folder)
        folder = os.open(self.folder, _FOLDER)
        try:
            _make_private(folder)
            name = self._mint.ascending("tool")
            _write(name, data, folder)
            os.fsync(folder)
        finally:
            os.close(folder)
        return str(self.folder / name)

    def _sweep(self, before_ms: int) -> int:
        removed = 0
        fd = os.open(self.folder, _FOLDER)
        try:
            with os.scandir(fd) as entries:
                old = [
                    entry.name
                    for entry in islice(entries, SWEEP_ENTRIES_MAX)
                    if _NAME.fullmatch(entry.name) and _is_older(entry, before_ms)
                ]
            for name in old:
                # Another process may sweep too, and one bad file is no reason to keep the others.
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=fd)
                    removed += 1
        finally:
            os.close(fd)
        return removed


class OutputFile:
    """A file that is written while a program runs. Only `finish` makes sure that it is on disk."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.size = 0
        self._fd = fd

    def write(self, data: bytes) -> bool:
        """Write a piece; False for what is over the limit of one file, which is then left out."""
        room = max(0, FILE_BYTES_MAX - self.size)
        left = memoryview(data)[:room]
        while left:
            written = os.write(self._fd, left)
            self.size += written
            left = left[written:]
        return len(data) <= room

    def finish(self) -> None:
        """Put it on disk and close it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _make_private(folder: int) -> None:
    status = os.fstat(folder)
    if status.st_uid != os.geteuid():
        raise PermissionError("the folder belongs to another user")
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.fchmod(folder, 0o700)


def _write(name: str, data: bytes, folder: int) -> None:
    fd = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, 0o600)
            file.write(data)
            file.flush()
            os.fsync(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def _is_older(entry: os.DirEntry[str], before_ms: int) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_mtime_ns < before_ms * 1_000_000

"""Every effect on the disk, one method each. All of it goes through here, so that a test can stop anywhere.

Before each effect the failpoint is given its name. When it raises `TornWrite`, half of the bytes are written
first: that is what a power cut leaves. Names are relative to the store's root, and links are not followed.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from holdfast.person.private import give_to_user
from holdfast.store.base import Failpoint, no_failpoint
from holdfast.sync_filesystem import sync_filesystem

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_CHUNK = 65536
_FOLDERS_MAX = 4096
_REPLACED_AT_ONCE = 500


class TornWrite(BaseException):
    """Raised by a test's failpoint: write half of it, then stop as if the power had gone."""


class Disk:
    """The tree's root folder, held open."""

    def __init__(self, root: Path, failpoint: Failpoint = no_failpoint, *, readonly: bool = False) -> None:
        self.root = root
        self._log_flags = os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_RDONLY if readonly else os.O_RDWR | os.O_CREAT)
        self._failpoint = failpoint
        self._folders: set[str] = set()
        self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def read(self, path: str) -> bytes:
        """The whole file; `FileNotFoundError` when there is none."""
        fd = os.open(path, _READ, dir_fd=self._fd)
        try:
            data = os.read(fd, _CHUNK)
            if len(data) < _CHUNK:
                return data
            pieces = [data]
            while piece := os.read(fd, 1 << 22):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        """Whether something has this name."""
        return os.access(path, os.F_OK, dir_fd=self._fd)

    def write(self, path: str, data: bytes) -> None:
        """Put the bytes into the file, in place: the journal has them until they are on the disk for sure."""
        try:
            self._failpoint(f"write {path}")
        except TornWrite:
            self._put(path, data[: len(data) // 2])
            raise
        self._put(path, data)

    def _put(self, path: str, data: bytes) -> None:
        folder = _above(path)
        if folder not in self._folders:
            self._know(folder)
        try:
            fd = os.open(path, _WRITE, 0o600, dir_fd=self._fd)
        except FileNotFoundError:  # Another process has removed the folder since.
            self._make_folder(folder)
            fd = os.open(path, _WRITE, 0o600, dir_fd=self._fd)
        try:
            # Not O_TRUNC: some file systems flush a truncated file on close, which costs a disk wait.
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, data[written:])
            found = os.fstat(fd)
            if found.st_size > len(data):
                os.ftruncate(fd, len(data))
            if found.st_mode & 0o600 != 0o600:
                os.fchmod(fd, 0o600)  # The umask may have taken the user's own bits away.
        finally:
            os.close(fd)

    def _know(self, folder: str) -> None:
        """Make a folder that we have not written into lately: cheaper than to try and to fail first."""
        if folder:
            self._make_folder(folder)
        if len(self._folders) >= _FOLDERS_MAX:
            self._folders.clear()
        self._folders.add(folder)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        self._failpoint(f"mkdir {path}")
        self._make_folder(path)

    def _make_folder(self, path: str) -> None:
        try:
            os.mkdir(path, 0o700, dir_fd=self._fd)
        except FileNotFoundError:
            self._make_folder(_above(path))
            os.mkdir(path, 0o700, dir_fd=self._fd)
        except FileExistsError:
            return
        os.chmod(path, 0o700, dir_fd=self._fd)  # The umask may have taken the user's own bits away.

    def unlink(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""
        self._failpoint(f"unlink {path}")
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path, dir_fd=self._fd)

    def drop_folder(self, path: str) -> None:
        """Remove a folder if it is empty."""
        self._folders.discard(path)
        with suppress(OSError):
            os.rmdir(path, dir_fd=self._fd)

    def rename(self, path: str, target: str) -> None:
        """Move a file over another."""
        self._failpoint(f"rename {target}")
        try:
            os.rename(path, target, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except FileNotFoundError:
            self._make_folder(_above(target))
            os.rename(path, target, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file so that it is there whole, or as it was before, whatever happens."""
        draft = f"{path}.draft"
        self.write(draft, data)
        self.sync_file(draft)
        self.rename(draft, path)
        self.sync_file(_above(path) or ".")

    def replace_all(self, files: Mapping[str, bytes]) -> None:
        """`replace` for many files: new bytes are on the disk before they take a file's place."""
        paths = list(files)
        for begin in range(0, len(paths), _REPLACED_AT_ONCE):
            chunk = paths[begin : begin + _REPLACED_AT_ONCE]
            for path in chunk:
                self.write(f"{path}.draft", files[path])
            drafts = [f"{path}.draft" for path in chunk]
            self.sync_all(drafts.copy)
            for path in chunk:
                self.rename(f"{path}.draft", path)

    def open_log(self, path: str) -> int:
        """A file that is written in place, for reading and, where that is allowed, writing."""
        try:
            fd = os.open(path, self._log_flags, 0o600, dir_fd=self._fd)
        except FileNotFoundError:
            if not self._log_flags & os.O_CREAT:
                raise
            self._make_folder(_above(path))
            fd = os.open(path, self._log_flags, 0o600, dir_fd=self._fd)
        if self._log_flags & os.O_CREAT:
            give_to_user(fd)
        return fd

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        """Write into an open file at an offset, and wait until the bytes are on the disk."""
        try:
            self._failpoint("journal write")
        except TornWrite:
            os.pwrite(fd, data[: len(data) // 2], offset)
            raise
        # One call that writes and waits is a quarter quicker than a write and a sync.
        written = os.pwritev(fd, (data,), offset, _DSYNC)
        while written < len(data):
            written += os.pwritev(fd, (data[written:],), offset + written, _DSYNC)
        if not _DSYNC:
            _datasync(fd)

    def sync_file(self, path: str) -> None:
        """Wait until a file or folder is on the disk."""
        self._failpoint(f"sync {path}")
        self._sync_file(path)

    def _sync_file(self, path: str) -> None:
        fd = os.open(path, _READ, dir_fd=self._fd)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_all(self, paths: Callable[[], Iterable[str]]) -> None:
        """Wait until all of the tree is on the disk; `paths` tells what may not be, if it must be named."""
        self._failpoint("syncfs")
        if sync_filesystem(self._fd):
            return
        folders = {"."}
        for path in paths():
            with suppress(FileNotFoundError):
                self._sync_file(path)
            while path := _above(path):
                folders.add(path)
        for folder in folders:
            with suppress(FileNotFoundError):
                self._sync_file(folder)

    def step(self, name: str) -> None:
        """An effect that SQLite has on the disk."""
        self._failpoint(name)

    def walk(self, folder: str) -> Iterable[str]:
        """Every file below a folder, by name; links are passed over."""
        try:
            entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from self.walk(f"{folder}/{entry.name}")
            elif entry.is_file(follow_symlinks=False):
                yield f"{folder}/{entry.name}"

    def close(self) -> None:
        """Let the folder go."""
        os.close(self._fd)


def _above(path: str) -> str:
    return path.rpartition("/")[0]


_DSYNC: int = getattr(os, "RWF_DSYNC", 0)
_datasync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)

"""Writes what was judged, whole or not at all.

The new content goes into a temporary file beside the old one, which is then renamed over it, all of it
relative to a folder that was opened without following a link (`open_path`). What must stay true: whoever
looks, also after a crash or a power cut, sees the old content or the new and never a mix; mode bits, extended
attributes and, where the system allows it, the owner stay; a link or a device swapped in is an error;
content that is not what the caller has seen is not overwritten, and of two processes of ours one waits for
the other (`write_lock`). Other hard links to a file keep the old content.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from holdfast.errors import Conflict, ContextError, HoldfastError, Refused
from holdfast.location import open_path
from holdfast.location.write_lock import locked

TEMPORARY = ".holdfast-"
"""The beginning of the names of temporary files: what a killed process left is known by it."""
STALE_S = 60.0
"""So old is what a killed process left, at least: a process of another host or container may look dead."""
SWEPT_MAX = 2_000
"""Names that are looked at for it."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_TEMPORARY = re.compile(re.escape(TEMPORARY) + r"([1-9]\d{0,9})-[0-9a-f]{12}")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a file has beside its content."""

    uid: int
    gid: int
    mode: int
    attributes: dict[str, bytes]


def kept(real: Path) -> Kept:
    """What a file has beside its content, for another that takes its place."""
    with _folder(real, make=False) as folder:
        return _kept(folder, real)


def digest(data: bytes) -> str:
    """By which content is known again."""
    return hashlib.sha256(data).hexdigest()


def write(real: Path, data: bytes, *, seen: str | None, like: Kept | None = None) -> None:
    """Give a file new content. `seen`: the digest of what it holds; None if there is to be no such file.

    `Conflict` if it holds something else by now. Missing folders are made. A file keeps what it has beside
    its content; a new one gets it from `like`.
    """
    with _folder(real, make=True) as folder:
        old = _status(folder, real)
        _check(folder, real, old, seen)
        name = f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"
        try:
            _fill(folder, name, data, like if old is None else _kept(folder, real))
            with locked(real):
                _check(folder, real, _status(folder, real), seen)
                _put(folder, name, real, is_new=seen is None)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
            if isinstance(error, OSError):
                raise _failure(error, real) from error
            raise
        _settle(folder)


def remove(real: Path, *, seen: str) -> None:
    """Remove a file that holds what the caller has seen."""
    with _folder(real, make=False) as folder:
        with locked(real):
            _check(folder, real, _status(folder, real), seen)
            try:
                os.unlink(real.name, dir_fd=folder)
            except OSError as error:
                raise _failure(error, real) from error
        _settle(folder)


def _put(folder: int, name: str, real: Path, *, is_new: bool) -> None:
    """Give the temporary file its name. A link never replaces what another program has put there meanwhile;
    where the filesystem has none, a rename must do.
    """
    if is_new:
        try:
            os.link(name, real.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError as error:
            raise Conflict(f"{real} exists by now; it did not when this began") from error
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            os.unlink(name, dir_fd=folder)
            return
    os.rename(name, real.name, src_dir_fd=folder, dst_dir_fd=folder)


@contextlib.contextmanager
def _folder(real: Path, *, make: bool) -> Iterator[int]:
    """The folder of a file, opened; with `make`, made where it is missing. What the system has against the
    work in it becomes an error of ours: callers put back what they did before it.
    """
    try:
        if make:
            _make_folders(real)
        folder = open_path.folder_of(real)
    except OSError as error:
        raise _failure(error, real) from error
    try:
        yield folder
    except OSError as error:
        raise _failure(error, real) from error
    finally:
        os.close(folder)


def _make_folders(real: Path) -> None:
    """Make the missing folders on the way, from the top, each inside the one that was opened before."""
    missing = [folder for folder in real.parents if not os.path.lexists(folder)]
    for folder in reversed(missing):
        parent = open_path.folder_of(folder)
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder.name, dir_fd=parent)
        finally:
            os.close(parent)


def _status(folder: int, real: Path) -> os.stat_result | None:
    try:
        return os.stat(real.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _check(folder: int, real: Path, status: os.stat_result | None, seen: str | None) -> None:
    """Raise if what stands there is not what the caller has seen."""
    if status is None:
        if seen is not None:
            raise Conflict(f"{real} is gone; it was there when it was read")
        return
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{real} is {open_path.kind_of(status.st_mode)} by now, which is never written")
    if seen is None:
        raise Conflict(f"{real} exists by now; it did not when this began")
    fd = open_path.file_in(folder, real)
    try:
        if _digest_of(fd) != seen:
            raise Conflict(f"{real} holds something else than when it was read")
    finally:
        os.close(fd)


def _digest_of(fd: int) -> str:
    found = hashlib.sha256()
    while chunk := os.read(fd, _CHUNK):
        found.update(chunk)
    return found.hexdigest()


def _fill(folder: int, name: str, data: bytes, like: Kept | None) -> None:
    """Make the temporary file: the content, and what the old file had beside it."""
    fd = os.open(name, _NEW, 0o600 if like is not None else 0o666, dir_fd=folder)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(fd, left) :]
        if like is not None:
            _keep(fd, like)
        os.fsync(fd)
    finally:
        os.close(fd)


def _kept(folder: int, real: Path) -> Kept:
    fd = open_path.file_in(folder, real)
    try:
        status = os.fstat(fd)
        return Kept(
            uid=status.st_uid,
            gid=status.st_gid,
            mode=stat.S_IMODE(status.st_mode),
            attributes=_attributes(fd),
        )
    finally:
        os.close(fd)


def _attributes(fd: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    if not hasattr(os, "listxattr"):  # Linux has it.
        return found
    try:
        for name in os.listxattr(fd):
            with contextlib.suppress(OSError):  # Some belong to the system.
                found[name] = os.getxattr(fd, name)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
    return found


def _keep(fd: int, like: Kept) -> None:
    """Give the new file the owner, the mode and the extended attributes of the old one."""
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (like.uid, like.gid):
        with contextlib.suppress(OSError):  # Only root may give files away.
            os.fchown(fd, like.uid, like.gid)
    # After the owner: a change of it clears the bits that lend rights, and they are lent to no other owner.
    now = os.fstat(fd)
    lends = 0 if (now.st_uid, now.st_gid) == (like.uid, like.gid) else stat.S_ISUID | stat.S_ISGID
    os.fchmod(fd, like.mode & ~lends)
    for name, value in like.attributes.items():
        with contextlib.suppress(OSError):
            os.setxattr(fd, name, value)


def _settle(folder: int) -> None:
    """Make the rename last, and clear away what killed processes left beside it. The folder may have been
    opened to pass through only.
    """
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return  # It may be searched but not listed.
    try:
        with contextlib.suppress(OSError):  # Some filesystems cannot.
            os.fsync(fd)
        with contextlib.suppress(OSError):
            _sweep(fd)
    finally:
        os.close(fd)


def _sweep(folder: int) -> None:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, SWEPT_MAX)]
    for name in names:
        found = _TEMPORARY.fullmatch(name)
        if found is None or _is_running(int(found[1])):
            continue
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            if is_ours and status.st_mtime < time.time() - STALE_S:
                os.unlink(name, dir_fd=folder)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _failure(error: OSError, real: Path) -> HoldfastError:
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Refused(f"{real} may not be written: {error.strerror}")
        case errno.ENOSPC | errno.EDQUOT:
            return ContextError(f"{real} was not written: {error.strerror}; make room and try again")
        case errno.ENAMETOOLONG:
            return Refused(f"{real} was not written: a name in it is too long")
        case errno.EEXIST | errno.EISDIR:
            return Refused(f"{real} was replaced by something else while it was being written; look again")
        case _:
            return open_path.failure(error, real)

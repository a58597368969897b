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
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from holdfast.errors import Conflict, ContextError, HoldfastError, Refused
from holdfast.location import open_path
from holdfast.location.write_lock import locked
from holdfast.sync_filesystem import sync_filesystem
from holdfast.take_name import NO_LINKS

TEMPORARY = ".holdfast-"
"""The beginning of the names of temporary files: what a killed process left is known by it."""
STALE_S = 60.0
"""So old is what a killed process left, at least: a process of another host or container may look dead."""
TOGETHER = 4
"""More folders than these are synced together."""
SWEPT_MAX = 2_000
"""Names that are looked at for it."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_TEMPORARY = re.compile(re.escape(TEMPORARY) + r"([1-9]\d{0,9})-[0-9a-f]{12}")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a file has beside its content."""

    uid: int
    gid: int
    mode: int
    attributes: dict[str, bytes]


def kept(real: Path) -> Kept:
    """What a file has beside its content, for another that takes its place."""
    folder = _opened(real, make=False)
    try:
        return _kept(folder, real)
    except OSError as error:
        raise _failure(error, real) from error
    finally:
        os.close(folder)


def is_temporary(name: str) -> bool:
    """Whether a file of this name is new content that is not in its place yet, or what a kill left of it."""
    return _TEMPORARY.fullmatch(name) is not None


def digest(data: bytes) -> str:
    """By which content is known again."""
    return hashlib.sha256(data).hexdigest()


def write(real: Path, data: bytes, *, seen: str | None, like: Kept | None = None) -> None:
    """Give a file new content. `seen`: the digest of what it holds; None if there is to be no such file.

    `Conflict` if it holds something else by now. Missing folders are made. A file keeps what it has beside
    its content; a new one gets it from `like`.
    """
    new = prepare(real, data, seen=seen, like=like)
    try:
        put(new)
        _settle(new.folder)
    finally:
        drop(new)


class New(msgspec.Struct, kw_only=True):
    """New content that lies beside its file, and is not in its place yet."""

    real: Path
    seen: str | None
    folder: int
    name: str
    is_put: bool = False


def prepare(real: Path, data: bytes, *, seen: str | None, like: Kept | None = None, sync: bool = True) -> New:
    """Write new content beside a file, as `write` takes it. Whoever does not let it be synced syncs it before
    it is put into its place. The caller drops it in the end, whether it was put or not.
    """
    folder = _opened(real, make=True)
    name = f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"
    new = New(real=real, seen=seen, folder=folder, name=name)
    try:
        old = _status(folder, real)
        _check(folder, real, old, seen)
        _fill(folder, name, data, like if old is None else _kept(folder, real))
        if sync:
            _sync(new)
    except BaseException as error:
        drop(new)
        if isinstance(error, OSError):
            raise _failure(error, real) from error
        raise
    return new


def sync(news: Sequence[New]) -> None:
    """Make the contents last that were prepared without it: all at once, where the system can."""
    try:
        if not _sync_filesystems([new.folder for new in news]):
            for new in news:
                _sync(new)
    except OSError as error:
        raise open_path.failure(error, news[0].real.parent) from error


def _sync(new: New) -> None:
    fd = os.open(new.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=new.folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def put(new: New) -> None:
    """Put new content into its place; `Conflict` if the file holds something else than was seen."""
    try:
        with locked(new.real):
            _check(new.folder, new.real, _status(new.folder, new.real), new.seen)
            _put(new.folder, new.name, new.real, is_new=new.seen is None)
    except OSError as error:
        raise _failure(error, new.real) from error
    new.is_put = True


def drop(new: New) -> None:
    """Clear away what is left of it."""
    if not new.is_put:
        with contextlib.suppress(OSError):
            os.unlink(new.name, dir_fd=new.folder)
    os.close(new.folder)


def remove(real: Path, *, seen: str, sync: bool = True) -> None:
    """Remove a file that holds what the caller has seen."""
    folder = _opened(real, make=False)
    try:
        with locked(real):
            _check(folder, real, _status(folder, real), seen)
            os.unlink(real.name, dir_fd=folder)
        if sync:
            _settle(folder)
    except OSError as error:
        raise _failure(error, real) from error
    finally:
        os.close(folder)


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
            if error.errno not in NO_LINKS:
                raise
        else:
            os.unlink(name, dir_fd=folder)
            return
    os.rename(name, real.name, src_dir_fd=folder, dst_dir_fd=folder)


def _opened(real: Path, *, make: bool) -> int:
    """The folder of a file, opened; with `make`, made where it is missing. What the system has against the
    work in it becomes an error of ours: callers put back what they did before it.
    """
    try:
        if make:
            _make_folders(real)
        return open_path.folder_of(real)
    except OSError as error:
        raise _failure(error, real) from error


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


def settle_all(folders: Iterable[Path]) -> None:
    """Make the names in some folders last: all at once, where the system can and it pays."""
    opened: list[int] = []
    try:
        for folder in folders:
            with contextlib.suppress(OSError):  # It is gone by now.
                opened.append(open_path.folder_of(folder / "any"))
        synced = len(opened) > TOGETHER and _sync_filesystems(opened)
        for fd in opened:
            _settle(fd, sync=not synced)
    finally:
        for fd in opened:
            os.close(fd)


def _sync_filesystems(folders: Iterable[int]) -> bool:
    """Sync those of some folders, each once: whether the system could."""
    devices = {os.fstat(folder).st_dev: folder for folder in folders}
    try:
        for folder in devices.values():
            # It may have been opened to pass through only.
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                if not sync_filesystem(fd):
                    return False
            finally:
                os.close(fd)
    except OSError:
        return False  # It may be searched but not listed.
    return True


def _settle(folder: int, *, sync: bool = True) -> None:
    """Make the names in a folder last, and clear away what killed processes left beside them. The folder may
    have been opened to pass through only.
    """
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return  # It may be searched but not listed.
    try:
        if sync:
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

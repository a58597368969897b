"""Opens what was judged, and nothing that was put in its place since.

A real path holds no link. It is walked from the root of the filesystem, one name at a time, each step
relative to the folder that the last one opened and none of them through a link. What must stay true: a link
swapped in after the judgement is an error, at whatever level it stands; opening never waits and never wakes a
device.

A hard link is a file like any other here: none of its names is known to be the right one, and to make one
takes access to the file already.
"""

import errno
import os
import stat
from pathlib import Path

from holdfast.errors import ContextError, HoldfastError, NotFound, Refused

# O_PATH (Linux) walks through folders that may be searched but not listed.
_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def file(real: Path) -> int:
    """The descriptor of a regular file, to read."""
    try:
        parent = folder_of(real)
        try:
            return file_in(parent, real)
        finally:
            os.close(parent)
    except OSError as error:
        raise failure(error, real) from error


def file_in(parent: int, real: Path) -> int:
    """The descriptor of a regular file in a folder that was opened, to read."""
    # Looked at before too: to open a device may already do something.
    _must_be_file(os.stat(real.name, dir_fd=parent, follow_symlinks=False), real)
    fd = os.open(real.name, _FILE, dir_fd=parent)
    try:
        _must_be_file(os.fstat(fd), real)
    except BaseException:
        os.close(fd)
        raise
    return fd


def folder(real: Path) -> int:
    """The descriptor of a folder, to list."""
    try:
        if real.parent == real:
            return os.open(real, _FOLDER)
        parent = folder_of(real)
        try:
            return os.open(real.name, _FOLDER, dir_fd=parent)
        finally:
            os.close(parent)
    except OSError as error:
        raise failure(error, real) from error


def folder_of(real: Path) -> int:
    """The descriptor of the folder that holds a real path: what is named relative to it cannot be swapped."""
    fd = os.open(real.anchor, _STEP)
    for name in real.parts[1:-1]:
        try:
            inner = os.open(name, _STEP, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def failure(error: OSError, path: Path) -> HoldfastError:
    """The system's error as one of ours."""
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{path} does not exist")
        case errno.ELOOP | errno.ENOTDIR:
            return Refused(f"{path} was replaced by something else while it was being opened; look again")
        case errno.EACCES | errno.EPERM:
            return Refused(f"{path} may not be read: the system denies it")
        case _:
            return ContextError(f"{path} cannot be read: {error.strerror or error}")


def _must_be_file(status: os.stat_result, real: Path) -> None:
    if stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode):
        raise Refused(f"{real} was replaced by something else while it was being opened; look again")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{real} is {kind_of(status.st_mode)}, which is never opened")


def kind_of(mode: int) -> str:
    """What an entry of the filesystem is, in words."""
    names = {
        stat.S_IFREG: "a file",
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return names.get(stat.S_IFMT(mode), "no ordinary file")

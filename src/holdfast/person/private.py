"""Files and folders for the user alone: 0600 and 0700, whatever the umask.

`mkdir(parents=True)` gives its mode to the last folder only, and SQLite makes a file that others may read
where it finds none: so both are made here first.
"""

import errno
import os
import stat
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing. One that is there stays as it is."""
    missing: list[Path] = []
    above = path
    while not above.exists():
        missing.append(above)
        above = above.parent
    for each in reversed(missing):
        try:
            each.mkdir(mode=0o700)
        except FileExistsError:  # Another process was faster, or it is no folder.
            continue
        each.chmod(0o700)  # The umask may have taken the user's own bits away.
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def make_file(path: Path) -> None:
    """Make an empty file if none is there; one that others may read is closed to them.

    One that is there is not opened: it may be a database that this process has open, and the close of any
    descriptor of a file gives up all locks that the process has on it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        if path.exists():
            _close_to_others(path)
            return
        fd = os.open(path, flags, 0o600)  # A link to what is not there yet.
    try:
        os.fchmod(fd, 0o600)  # The umask may have taken the user's own bits away.
    finally:
        os.close(fd)


def give_to_user(fd: int) -> None:
    """Give the user's own bits to a file that was just made, where the umask took them away."""
    found = os.fstat(fd)
    if stat.S_IMODE(found.st_mode) & 0o600 != 0o600 and found.st_uid == os.geteuid():
        os.fchmod(fd, 0o600)


def _close_to_others(path: Path) -> None:
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if stat.S_IMODE(found.st_mode) & 0o077 and found.st_uid == os.geteuid():
        path.chmod(0o600)

"""Reads a small file of an unknown author, perhaps made to harm: it never waits and never reads much."""

import os
import stat
from pathlib import Path

BYTES_MAX = 4096


def small_text(path: Path, *, bytes_max: int = BYTES_MAX, follow: bool = True) -> str:
    """The text of a regular file, up to a bound; nothing where there is no such file.

    A FIFO, a device or a socket is left alone: to open one may wait for ever, or do something.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        # Looked at before too: to open a device may already do something.
        if not stat.S_ISREG(path.stat(follow_symlinks=follow).st_mode):
            return ""
        fd = os.open(path, flags)
    except (OSError, ValueError):  # ValueError: a name with NUL
        return ""
    try:
        return "" if not stat.S_ISREG(os.fstat(fd).st_mode) else _read(fd, bytes_max)
    except OSError:
        return ""
    finally:
        os.close(fd)


def _read(fd: int, bytes_max: int) -> str:
    data = b""
    while len(data) < bytes_max and (piece := os.read(fd, bytes_max - len(data))):
        data += piece
    return os.fsdecode(data).strip()

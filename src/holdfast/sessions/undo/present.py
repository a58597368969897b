"""What stands at a path now, read without following a link. Bounded; run it in a thread."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from holdfast.errors import HoldfastError
from holdfast.location import open_path
from holdfast.sessions.undo.plan import MISSING, Held

BYTES_MAX: Final = 256 << 20
_CHUNK: Final = 1 << 20


def held(real: Path) -> Held:
    """The file with its content and its permission bits; nothing; or what is in the way."""
    try:
        folder = open_path.folder_of(real)
    except OSError as error:
        return _obstacle(error)
    try:
        status = os.stat(real.name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            return Held(obstacle=f"it is {open_path.kind_of(status.st_mode)} by now")
        if status.st_size > BYTES_MAX:
            return Held(obstacle=f"it is larger than {BYTES_MAX >> 20} MiB, too large to compare")
        fd = open_path.file_in(folder, real)
        try:
            return Held(_read(fd), stat.S_IMODE(os.fstat(fd).st_mode))
        finally:
            os.close(fd)
    except OSError as error:
        return _obstacle(error)
    except HoldfastError as error:
        return Held(obstacle=str(error))
    finally:
        os.close(folder)


def _read(fd: int) -> bytes:
    found = bytearray()
    while len(found) <= BYTES_MAX and (chunk := os.read(fd, _CHUNK)):
        found += chunk
    return bytes(found)


def _obstacle(error: OSError) -> Held:
    match error.errno:
        case errno.ENOENT:
            return MISSING
        case errno.ENOTDIR | errno.ELOOP:
            return Held(obstacle="a folder on its way is something else by now")
        case _:
            return Held(obstacle=f"it cannot be read: {error.strerror or error}")

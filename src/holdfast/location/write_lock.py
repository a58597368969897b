"""One writer a file, over all processes of this user on this machine.

The check of what a file holds and the rename over it are two steps: between them another Holdfast could put
its own, and one of two acknowledged changes would be lost. Other programs take no such lock; for them the
check right before the rename is all there is.
"""

import contextlib
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from holdfast.errors import Conflict, ContextError, StoreBusy
from holdfast.file_lock import FileLock
from holdfast.person import directories, private

WAIT_S: Final = 10.0


@contextlib.contextmanager
def locked(real: Path) -> Iterator[None]:
    """Hold the lock of a path; `Conflict` when another process holds it too long.

    A lock file serves many paths, so that their number stays bounded; nobody holds two.
    """
    lock = _lock(real)
    if lock is None:
        yield
        return
    try:
        try:
            lock.acquire(wait_s=WAIT_S)
        except StoreBusy as error:
            raise Conflict(f"{real} is being written by another process for {WAIT_S:.0f} s") from error
        yield
    finally:
        lock.close()


def _lock(real: Path) -> FileLock | None:
    """None where this user has no place for it: then only the check protects the file."""
    name = sha256(os.fsencode(real)).hexdigest()[:2]
    try:
        folder = directories.state() / "write-locks"
        private.make_folder(folder)
        return FileLock(folder / name)
    except (OSError, ContextError):
        return None

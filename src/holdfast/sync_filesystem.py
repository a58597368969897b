"""Waits until all that was written to a filesystem is on its disk: once, where a sync of each file would take
as long for every one of them.
"""

from collections.abc import Callable
from functools import cache


def sync_filesystem(fd: int) -> bool:
    """Sync the filesystem of an open file or folder: whether the system could."""
    call = _found()
    return call is not None and call(fd) == 0


@cache
def _found() -> Callable[[int], int] | None:
    import ctypes  # It takes 5 ms.

    found = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return None if found is None else lambda fd: int(found(fd))

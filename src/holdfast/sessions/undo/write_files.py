"""Writes planned files, each whole or not at all, and puts them back when one of them cannot be written."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.location import open_path, write_path
from holdfast.location.write_path import Kept
from holdfast.sessions.undo import swapped
from holdfast.sessions.undo.plan import Held, Planned


class NotWritten(Exception):
    """A file could not be written. `restored`: whether all others hold again what they held."""

    def __init__(self, cause: HoldfastError, *, restored: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.restored = restored


def write_all(files: Sequence[Planned]) -> None:
    """Write the files that change; `NotWritten` if one holds something else by now, or cannot be written."""
    done: list[Planned] = []
    # Files that go may stand in the way of others.
    for each in sorted(files, key=lambda each: each.then.data is not None):
        try:
            write(Path(each.path), each.now, each.then)
        except HoldfastError as error:
            raise NotWritten(error, restored=_put_back(done)) from error
        done.append(each)


def _put_back(done: Sequence[Planned]) -> bool:
    restored = True
    for each in reversed(done):
        try:
            write(Path(each.path), each.then, each.now)
        except HoldfastError:
            restored = False
    return restored


def write(real: Path, now: Held, then: Held) -> None:
    """Make a file that holds `now` hold `then`; `Conflict` if it holds something else."""
    seen = None if now.data is None else write_path.digest(now.data)
    if then.data is None:
        if seen is not None:
            write_path.remove(real, seen=seen)
        return
    if now.data is None:
        swapped.remove_folder(real)
    if then.data != now.data:
        write_path.write(real, then.data, seen=seen, like=_like(then))
    if then.mode is not None and then.mode != now.mode:
        _set_mode(real, then.mode)


def _like(then: Held) -> Kept | None:
    """What a new file has beside its content."""
    if then.mode is None:
        return None
    return Kept(uid=os.geteuid(), gid=os.getegid(), mode=stat.S_IMODE(then.mode), attributes={})


def _set_mode(real: Path, mode: int) -> None:
    with suppress(HoldfastError):  # Something else stands there already.
        fd = open_path.file(real)
        try:
            with suppress(OSError):  # It belongs to another user, or the filesystem has no modes.
                os.fchmod(fd, mode)
        finally:
            os.close(fd)

"""Writes planned files, each whole or not at all, and puts them back when one of them cannot be written."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from holdfast.errors import ContextError, HoldfastError
from holdfast.location import open_path, write_path
from holdfast.location.write_path import Kept, New
from holdfast.sessions.undo import swapped
from holdfast.sessions.undo.plan import Held, Planned

BATCH_FILES: Final = 250
"""Each holds a folder open."""
BATCH_BYTES: Final = 32 << 20


class NotWritten(Exception):
    """A file could not be written. `restored`: whether all others hold again what they held."""

    def __init__(self, cause: HoldfastError, *, restored: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.restored = restored


def write_all(files: Sequence[Planned]) -> None:
    """Write the files that change; `NotWritten` if one holds something else by now, or cannot be written.

    In batches: all contents of one are synced together, then each takes its place.
    """
    done: list[Planned] = []
    try:
        # Files that go may stand in the way of others.
        _remove([each for each in files if each.then.data is None], done)
        rest = [each for each in files if each.then.data is not None]
        for batch in _batches(sorted(rest, key=lambda each: each.path)):
            _write_batch(batch, done)
    except HoldfastError as error:
        raise NotWritten(error, restored=_put_back(done)) from error
    finally:
        for at in range(0, len(folders := _folders(done)), BATCH_FILES):
            write_path.settle_all(folders[at : at + BATCH_FILES])


def _folders(files: Sequence[Planned]) -> list[Path]:
    return sorted({Path(each.path).parent for each in files})


def _remove(files: Sequence[Planned], done: list[Planned]) -> None:
    for each in files:
        if each.now.data is not None:
            write_path.remove(Path(each.path), seen=write_path.digest(each.now.data), sync=False)
        done.append(each)


def _batches(files: Sequence[Planned]) -> Iterator[list[Planned]]:
    batch: list[Planned] = []
    size = 0
    for each in files:
        size += len(each.then.data or b"")
        if batch and (len(batch) == BATCH_FILES or size > BATCH_BYTES):
            yield batch
            batch, size = [], len(each.then.data or b"")
        batch.append(each)
    if batch:
        yield batch


def _write_batch(batch: Sequence[Planned], done: list[Planned]) -> None:
    """Write a batch; one by one where there is no room for all of it beside the old files."""
    before = len(done)
    try:
        _write(batch, done)
    except ContextError:
        if len(batch) == 1 or len(done) > before:
            raise
        for each in batch:
            _write([each], done)


def _write(batch: Sequence[Planned], done: list[Planned]) -> None:
    news: dict[str, New] = {}
    try:
        for each in batch:
            if each.now.data is None:
                swapped.remove_folder(Path(each.path))
            if each.then.data is not None and each.then.data != each.now.data:
                seen = None if each.now.data is None else write_path.digest(each.now.data)
                news[each.path] = write_path.prepare(
                    Path(each.path), each.then.data, seen=seen, like=_like(each.then), sync=len(batch) == 1
                )
        if len(batch) > 1:
            write_path.sync(list(news.values()))
        for each in batch:
            if each.path in news:
                write_path.put(news[each.path])
            if each.then.mode is not None and each.then.mode != each.now.mode:
                _set_mode(Path(each.path), each.then.mode)
            done.append(each)
    finally:
        for new in news.values():
            write_path.drop(new)


def _put_back(done: Sequence[Planned]) -> bool:
    """What was done, undone file by file: whether all of it was."""
    restored = True
    for each in reversed(done):
        back = msgspec.structs.replace(each, now=each.then, then=each.now)
        try:
            _remove([back], []) if back.then.data is None else _write([back], [])
        except HoldfastError:
            restored = False
    return restored


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

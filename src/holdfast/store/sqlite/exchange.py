"""Puts another file in the place of a store's: the present one is kept beside, never written over.

What must stay true: at no moment does a log lie beside a database that it does not belong to, nor a database
without its log. A crash in the middle leaves a note (see `cut_off`), and the next command undoes what was
begun.
"""

import fcntl
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import apsw

from holdfast.errors import Refused, StoreError
from holdfast.file_lock import FileLock
from holdfast.store.base import Failpoint, no_failpoint
from holdfast.store.sqlite.cut_off import LOGS, named, undo, write_note
from holdfast.store.sqlite.database import Database, sync_folder, translated
from holdfast.store.sqlite.identity import Identity, identify
from holdfast.store.tables.connection import set_pragmas
from holdfast.take_name import NO_LINKS

_LOCK_BYTES, _LOCK_COUNT = 0x40000000, 512
"""The bytes of a database file that SQLite locks: an open connection to a log holds some of them."""
_SHARED_BYTE = 128
"""The byte of the shared memory that every open connection to a log holds, also when the file is gone."""


def beside(path: Path, ending: str) -> Path:
    """A name for a file that is to be kept, and for its logs: its time, and a number where that is taken."""
    stem = f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return next(found for name in names if not _taken(found := path.with_name(f"{name}.{ending}")))


def exchange(
    database: Database,
    new: Path,
    aside: Path,
    *,
    seen: Identity | None = None,
    failpoint: Failpoint = no_failpoint,
) -> tuple[Path, ...]:
    """Move the store's file and its logs to `aside` and `new` into its place; what was kept, the file first.

    Refused while another process has the store open, and where it is not what was `seen` any more. The caller
    has no connection to the store, nor to `new`. All lie in one folder.
    """
    _keep_log(new)
    lock = FileLock(database.lock_path)
    try:
        with lock, _alone(database.path):
            undo(database)
            if seen is not None and identify(database) != seen:
                raise Refused(f"{database.path} was changed by another process meanwhile; look at it again")
            if taken := _taken(aside):
                raise StoreError(f"{taken} exists already; move it away")
            try:
                return _exchange(database, new, aside, failpoint)
            except (Exception, KeyboardInterrupt) as error:
                undo(database)
                if isinstance(error, OSError) and error.errno in NO_LINKS:
                    raise StoreError(
                        f"the disk that holds {database.path} has no hard links, so nothing can be put in "
                        "its place; move it away with its log, and copy there a backup, or what "
                        "`holdfast doctor --salvage NEW` writes"
                    ) from error
                raise
    finally:
        lock.close()


def _exchange(database: Database, new: Path, aside: Path, failpoint: Failpoint) -> tuple[Path, ...]:
    """Each thing gets its other name before it loses its own; the file loses it before its logs do."""
    path = database.path
    failpoint("note")
    write_note(database, aside, new)
    kept: list[Path] = []
    for suffix in ("", *LOGS):
        if named(path, suffix).exists():
            failpoint(f"link{suffix}")
            named(aside, suffix).hardlink_to(named(path, suffix))
            kept.append(named(aside, suffix))
    sync_folder(path.parent)
    for suffix in ("", *LOGS):
        failpoint(f"unlink{suffix}")
        named(path, suffix).unlink(missing_ok=True)
    derived = [named(path, "-shm"), *(named(database.search_path, suffix) for suffix in ("", "-wal", "-shm"))]
    for each in derived:
        each.unlink(missing_ok=True)
    sync_folder(path.parent)
    failpoint("rename")
    new.rename(path)
    sync_folder(path.parent)
    failpoint("end")
    database.note_path.unlink()
    sync_folder(path.parent)
    return tuple(kept)


def _taken(path: Path) -> Path | None:
    """What lies under a name, or beside it as if it were its log."""
    names = (named(path, suffix) for suffix in ("", *LOGS, "-shm"))
    return next((each for each in names if os.path.lexists(each)), None)


def _keep_log(new: Path) -> None:
    """Let a file that is to be a store keep a write-ahead log, as every store does, and be on the disk.

    Without one, readers and writers block each other, and an idle process holds no lock that tells of it.
    """
    try:
        with closing(apsw.Connection(str(new), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
            set_pragmas(db, "synchronous=FULL", "journal_mode=WAL")
    except apsw.Error as error:
        raise translated(error, new) from error
    finally:  # SQLite has removed them, unless it failed.
        for suffix in ("-wal", "-shm", "-journal"):
            new.with_name(new.name + suffix).unlink(missing_ok=True)
    fd = os.open(new, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep every other process from opening the file, if none has it open: not even one that is gone."""
    with ExitStack() as held:
        _hold(held, path, path, _LOCK_COUNT, _LOCK_BYTES)
        _hold(held, path, named(path, "-shm"), 1, _SHARED_BYTE)
        yield


def _hold(held: ExitStack, path: Path, locked: Path, count: int, begin: int) -> None:
    try:
        fd = os.open(locked, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    held.callback(os.close, fd)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, count, begin)
    except OSError:
        raise Refused(f"{path} is in use by another process; end it, then try again") from None

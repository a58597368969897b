"""Puts another file in the place of a store's: the present one is kept beside, never written over.

What must stay true: at no moment does a log lie beside a database that it does not belong to. A crash in the
middle leaves no file under the store's name, which opening says by name, and both others whole.
"""

import fcntl
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from holdfast.errors import Refused, StoreError
from holdfast.file_lock import FileLock
from holdfast.store.sqlite.database import Database, sync_folder, translated
from holdfast.store.tables.connection import set_pragmas

_LOCK_BYTES, _LOCK_COUNT = 0x40000000, 512
"""The bytes of a database file that SQLite locks: an open connection to a log holds some of them."""


def beside(path: Path, ending: str) -> Path:
    """A name for a file that is to be kept: its time, and a number where that is taken."""
    stem = f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return next(found for name in names if not (found := path.with_name(f"{name}.{ending}")).exists())


def exchange(database: Database, new: Path, aside: Path) -> None:
    """Move the store's file to `aside` and `new` into its place; refused while another process has it open.

    The caller has no connection to the store, nor to `new`.
    """
    if aside.exists():
        raise StoreError(f"{aside} exists already; move it away")
    _keep_log(new)
    lock = FileLock(database.lock_path)
    try:
        with lock, _alone(database.path):
            if database.path.exists():
                database.path.rename(aside)
            for suffix in ("-wal", "-journal"):
                log = database.path.with_name(database.path.name + suffix)
                if log.exists():
                    log.rename(aside.with_name(aside.name + suffix))
            derived = [database.path.with_name(database.path.name + "-shm")]
            derived += [Path(f"{database.search_path}{suffix}") for suffix in ("", "-wal", "-shm")]
            for path in derived:
                path.unlink(missing_ok=True)
            new.rename(database.path)
            sync_folder(database.path.parent)
    finally:
        lock.close()


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
    """Keep every other process from opening the file, if none has it open."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_COUNT, _LOCK_BYTES)
        except OSError:
            raise Refused(f"{path} is in use by another process; end it, then try again") from None
        yield
    finally:
        os.close(fd)

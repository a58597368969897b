"""Looks at a log that a killed process or a power cut has left, when the store is opened.

SQLite reads it up to the first frame that does not hold, and writes over the rest. So where a commit that was
acknowledged stands behind such a frame, the store is refused, and neither file has been touched. How far
SQLite has read, it says itself, at no cost; only what is committed behind that is read here: nothing, as a
rule, or what another process, which has the store open, is writing just now. Once for all connections of a
store that is opened.

A log whose file is gone or empty SQLite takes for one that was left by mistake, and removes. So there the
store is refused too, unless nothing was committed in the log for certain.
"""

from pathlib import Path

import apsw

from holdfast.errors import StoreDamaged
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.log import goes_on
from holdfast.store.sqlite.salvage.log_file import left_in_log, log_trouble
from holdfast.store.sqlite.salvage.raw_file import opened_raw


def check(database: Database, db: apsw.Connection) -> None:
    """Refuse a damaged log with `StoreDamaged`. The connection has not done anything yet."""
    check_file(database)
    # Else the close of the last connection moves the log into the file and removes it, also after a refusal.
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    if not _is_sound(db, database.log_path):
        _read_whole(database)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    database.log_is_read = True


def check_file(database: Database) -> None:
    """Refuse a log with commits, of which the file is gone or empty, before SQLite removes it."""
    try:
        if database.path.stat().st_size:
            return
        state = "empty"
    except FileNotFoundError:
        state = "gone"
    if left := left_in_log(database.log_path):
        raise StoreDamaged(str(database.path), f"it is {state}, and {left}")


def _is_sound(db: apsw.Connection, path: Path) -> bool:
    """Whether SQLite has read all that is committed; False where that is not certain yet."""
    db.execute("PRAGMA schema_version").fetchall()  # Now it reads the log, if no process has it open.
    try:
        read, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    except (apsw.ReadOnlyError, apsw.BusyError):
        # It does not say so to a user who may not write, nor, for a moment, beside a fast writer.
        return False
    try:
        with opened_raw(path) as data:
            return goes_on(data, read)
    except FileNotFoundError:
        return True


def _read_whole(database: Database) -> None:
    """Refuse the log if it is damaged."""
    if trouble := log_trouble(database.log_path):
        raise StoreDamaged(str(database.path), trouble)

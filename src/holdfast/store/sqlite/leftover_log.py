"""Looks at a log that a killed process or a power cut has left, when the store is opened.

SQLite reads it up to the first frame that does not hold, and writes over the rest. So where a commit that was
acknowledged stands behind such a frame, the store is refused, and neither file has been touched. How far
SQLite has read, it says itself, at no cost; only what stands behind that is read here: nothing, as a rule, or
what another process, which has the store open, is writing just now.

A log whose file is gone or empty SQLite takes for one that was left by mistake, and removes. So there the
store is refused too.
"""

from pathlib import Path

import apsw

from holdfast.errors import StoreDamaged
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.log import FRAME, HEADER, goes_on, page_size


def check(database: Database, db: apsw.Connection) -> None:
    """Refuse a damaged log with `StoreDamaged`. The connection has not done anything yet."""
    check_file(database)
    # Else the close of the last connection moves the log into the file and removes it, also after a refusal.
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    if not _is_sound(db, database.log_path):
        _read_whole(database)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def check_file(database: Database) -> None:
    """Refuse a log with commits, of which the file is gone or empty, before SQLite removes it."""
    try:
        if database.path.stat().st_size:
            return
        state = "empty"
    except FileNotFoundError:
        state = "gone"
    from holdfast.store.sqlite.salvage.log_file import holds_commits

    if holds_commits(database.log_path):
        raise StoreDamaged(str(database.path), f"it is {state}, and its log holds what was committed last")


def _is_sound(db: apsw.Connection, path: Path) -> bool:
    """Whether SQLite has read all that is committed; False where that is not certain yet."""
    db.execute("PRAGMA schema_version").fetchall()  # Now it reads the log, if no process has it open.
    try:
        read, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    except (apsw.ReadOnlyError, apsw.BusyError):
        # It does not say so to a user who may not write, nor, for a moment, beside a fast writer.
        return False
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(HEADER)
            if read > 0:
                file.seek(HEADER + (read - 1) * (FRAME + page_size(head)))
            return goes_on(head + file.read(), first=read <= 0)
    except FileNotFoundError:
        return True


def _read_whole(database: Database) -> None:
    """Refuse the log if it is damaged."""
    from holdfast.store.sqlite.salvage.log_file import log_trouble

    if trouble := log_trouble(database.log_path):
        raise StoreDamaged(str(database.path), trouble)
    database.log_is_read = True

"""The pages of a store as of one moment, while other processes go on writing it.

What must stay true: nobody waits for a reading, which may take minutes. The log is read first, and a page
that it has is taken from there; the others come from the file. So the pages are of one moment unless the
file is written meanwhile, by a checkpoint of later commits, or gives way to another. Then all is read again,
and the last time with the store's lock: a writer that never rests cannot keep a reading from ending.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import NamedTuple

import apsw
from msgspec.structs import replace

from holdfast.errors import StoreError, StoreMissing
from holdfast.file_lock import FileLock
from holdfast.store.base import Failpoint, no_failpoint
from holdfast.store.sqlite.cut_off import named, settle
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.identity import identify
from holdfast.store.sqlite.salvage.log_file import log_bytes, not_given
from holdfast.store.sqlite.salvage.page_size import sized
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.sqlite.salvage.raw_file import Kept, RawFile
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.write import default_roots

READINGS = 3
"""How often a store is read at most; the last time nobody may commit."""
DISTURBED = "another process has written the file while it was read: more may be lost than is named"
GRAIN_S = 0.02
"""The times of files go by the ticks of a clock: two changes within one tick leave the same time."""


class Source(NamedTuple):
    """The pages of a store, and what its disk has not given of them."""

    pages: Pages
    file: RawFile | None
    log_unreadable: int

    def told(self, report: SalvageReport) -> SalvageReport:
        """The report, with that; now that all was read."""
        gaps = list(report.gaps)
        if self.file is not None and self.file.unreadable:
            gaps.append(not_given(self.file.unreadable, "the file"))
        if self.log_unreadable:
            gaps.append(f"{not_given(self.log_unreadable, 'the log')}: more may be lost than is named")
        unproved = report.unproved or self.log_unreadable > 0
        return replace(report, gaps=tuple(gaps), unproved=unproved)


def read(
    database: Database,
    work: Callable[[Source], SalvageReport],
    failpoint: Failpoint = no_failpoint,
    kept: Kept | None = None,
) -> SalvageReport:
    """What the work reports of the pages of one moment; it is done again where they were of two.

    `kept`: of a process that has the store open, until it has closed it.
    """
    with ExitStack() as opened:
        if kept is None:
            kept = opened.enter_context(closing(Kept()))
        _hold_off_checkpoints(database, opened)
        left, is_locked = READINGS, False
        while True:
            left -= 1
            if not database.path.exists():
                settle(database)
            if not left:
                is_locked = _lock(database, opened)
            seen = identify(database).file
            time.sleep(GRAIN_S)
            try:
                source = _open(database, kept)
                failpoint("read")
                report = source.told(work(source))
            except Exception:
                if not left or identify(database).file == seen:
                    raise
                continue  # What a row pointed to was another's by then, or the file was between its names.
            # Behind the lock, a checkpoint only moves what the log had when it was read.
            if is_locked or identify(database).file == seen:
                return report
            if not left:
                return replace(report, gaps=(*report.gaps, DISTURBED), unproved=True)


def _hold_off_checkpoints(database: Database, opened: ExitStack) -> None:
    """Let SQLite move no later commit into the file, where it can still open it: then two readings suffice.
    Damage may forbid it, so nothing else relies on it.
    """
    if not named(database.path, "-shm").exists():
        return  # No process has it open, and a command that looks makes no file.
    try:
        # One that may only read: the first to open a log and the last to close it leave it as it is.
        db = database.connect(readonly=True)
        opened.callback(db.close)
        db.execute("BEGIN").fetchall()
        db.execute("PRAGMA schema_version").fetchall()  # Now it has its mark in the log.
    except (apsw.Error, StoreError, OSError):
        return


def _lock(database: Database, opened: ExitStack) -> bool:
    """Let nobody commit, where this user can."""
    try:
        lock = FileLock(database.lock_path)
    except OSError:
        return False
    opened.callback(lock.close)
    lock.acquire()
    return True


def _open(database: Database, kept: Kept) -> Source:
    try:
        if not (database.path.exists() or database.log_path.exists()):
            # Nothing is made beside a store that is not there.
            raise StoreMissing(f"there is no store at {database.path}")
        # Without its file, or with an empty one, a log still holds what was written last.
        file = kept.raw(database.path) if database.path.exists() else None
        log, log_unreadable = log_bytes(database.log_path)
    except OSError as error:
        raise StoreError(f"{database.path} cannot be read: {error.strerror or error}") from error
    data = b"" if file is None else file
    return Source(sized(data, log, default_roots()), file, log_unreadable)

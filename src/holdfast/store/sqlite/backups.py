"""The automatic backups of a store: one a day, the newest three kept, in a folder beside it.

What must stay true: a backup is complete and sound, or it is not there; only one process makes one; none is
given up for one that failed. When the last one was tried, and why it was not made, stands in a small file, so
that to ask whether one is due costs a look at its time.
"""

import calendar
import os
import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw

from holdfast.errors import HoldfastError, NotFound, StoreBusy, StoreError
from holdfast.file_lock import FileLock
from holdfast.person.private import make_file, make_folder
from holdfast.store.base import FORMAT
from holdfast.store.sqlite.backup import copy_database
from holdfast.store.sqlite.database import Database, is_writable, translated

DAY_S = 24 * 3600
KEPT = 3
_FORM = "%Y%m%d-%H%M%S.db"
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}\.db")


class Backups:
    """The backups of one store."""

    def __init__(self, database: Database, now_s: Callable[[], float] = time.time) -> None:
        self._database = database
        self._now_s = now_s
        self.folder = database.path.with_name(database.path.name + "-backups")
        self._last = self.folder / "last"

    def is_due(self) -> bool:
        """Whether a day has passed since the last one was tried; a new store has a day of its own.

        None is where the folder cannot be used: `concerns` says so.
        """
        try:
            tried_s = self._last.stat().st_mtime
        except FileNotFoundError:
            with suppress(OSError):  # A full disk: there would be no room for a backup either.
                make_folder(self.folder)
                make_file(self._last)
            return False
        except OSError:
            return False
        return abs(self._now_s() - tried_s) > DAY_S  # Also when the clock was set back.

    def listed(self) -> list[Path]:
        """The backups that there are, the newest first.

        Those of the future, which a clock that ran ahead has left, come last: nobody knows how old they are.
        """
        try:
            names = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []
        now = _name(self._now_s())
        return sorted(names, key=lambda path: (path.name <= now, path.name), reverse=True)

    def concerns(self) -> tuple[str, ...]:
        """What a user who may write the store should know of its backups, a line each."""
        if not is_writable(self._database.path):
            return ()
        found: list[str] = []
        if os.path.lexists(self.folder) and not self.folder.is_dir():
            found.append(f"{self.folder} is no folder, so no automatic backup is made; move it away")
        elif self.folder.exists() and not os.access(self.folder, os.R_OK | os.W_OK | os.X_OK):
            found.append(f"{self.folder} cannot be written by this user, so no automatic backup is made")
        now = _name(self._now_s())
        future = [path.name for path in self.listed() if path.name > now]
        if future:
            names = ", ".join(future)
            found.append(f"automatic backups of the future ({names}) count as the oldest: a clock ran ahead")
        if (since_s := self._missing_since_s()) is not None:
            day = time.strftime("%Y-%m-%d", time.gmtime(since_s))
            found.append(f"no automatic backup was made since {day}, although the store was written")
        return tuple(found)

    def _missing_since_s(self) -> float | None:
        """When the newest was made, or else the store, if that is two days ago and it was written since."""
        now = _name(self._now_s())
        made = [path for path in self.listed() if path.name <= now]
        try:
            since_s = _time_s(made[0]) if made else self._database.lock_path.stat().st_mtime
            written_s = max(
                path.stat().st_mtime
                for path in (self._database.path, self._database.log_path)
                if path.exists()
            )
        except (OSError, ValueError):
            return None
        missing = self._now_s() - since_s > 2 * DAY_S and written_s - since_s > DAY_S
        return since_s if missing else None

    def trouble(self) -> str | None:
        """Why the last one was not made; None when it was."""
        try:
            return self._last.read_text("utf-8") or None
        except (OSError, UnicodeDecodeError):
            return None

    def make(self) -> None:
        """Make one if it is due and no other process does, and let the oldest go."""
        if not self.is_due():
            return
        try:
            lock = FileLock(self.folder / "lock")
        except OSError as error:
            self._note(f"{self.folder / 'lock'}: {error.strerror or error}")
            return
        try:
            lock.acquire(wait_s=0)
        except StoreBusy:
            return
        else:
            if self.is_due():
                self._note(self._made())
        finally:
            lock.close()

    def _made(self) -> str:
        """Make one; why it was not made, empty when it was."""
        for draft in self.folder.glob(".*.db.*"):  # Of a process that was ended in the middle.
            draft.unlink(missing_ok=True)
        try:
            need = 2 * sum(
                path.stat().st_size
                for path in (self._database.path, self._database.log_path)
                if path.exists()
            )
            disk = os.statvfs(self.folder)
            free = disk.f_bavail * disk.f_frsize
            if free < need:
                return f"{_size(free)} are free, and {_size(need)} are needed"
            made = self.folder / _name(self._now_s())
            copy(self._database, made)
        except (HoldfastError, OSError) as error:
            return str(error)
        for path in [each for each in self.listed() if each != made][KEPT - 1 :]:
            path.unlink(missing_ok=True)
        return ""

    def _note(self, trouble: str) -> None:
        """Note when it was tried, and why it was not made. Where no byte is free, what is there stays."""
        with suppress(OSError), self._last.open("r+b", buffering=0) as file:
            file.truncate(file.write(trouble.encode()))
        with suppress(OSError):
            now_s = self._now_s()
            os.utime(self._last, (now_s, now_s))

    def named(self, name: str) -> Path:
        """A backup by its name in the list, or any file by its path."""
        for path in (self.folder / name, Path(name)):
            if path.is_file():
                return path
        raise NotFound(f"no backup is called {name[:80]!r}")


def _name(at_s: float) -> str:
    return time.strftime(_FORM, time.gmtime(at_s))


def _time_s(path: Path) -> float:
    """When a backup was made; `ValueError` for a name that is no time."""
    return calendar.timegm(time.strptime(path.name, _FORM))


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def copy(database: Database, target: Path) -> None:
    """A whole and sound copy of a store as of one moment, under an incarnation of its own."""
    source = database.connect(readonly=True)
    try:
        with closing(source):
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM store").fetchall()  # From here on it is one moment.
            copy_database(source, target, verify=True)
    except apsw.Error as error:
        raise translated(error, database.path) from error


def check(path: Path) -> None:
    """Refuse a file that is no sound store of this format."""
    database = Database(path)
    database.readonly = True  # Nothing is made beside a file that may lie anywhere.
    try:
        with closing(database.connect(readonly=True)) as db:
            if db.execute("PRAGMA quick_check(1)").get != "ok":
                raise StoreError(f"{path} is damaged; name another backup")
            found = db.execute("SELECT value FROM store WHERE key='format'").get
    except apsw.Error as error:
        raise StoreError(f"{path} is no store ({error}); name another backup") from error
    if found != str(FORMAT):
        raise StoreError(f"{path} has format {found}, this Holdfast knows {FORMAT}; name another backup")

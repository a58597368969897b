"""Opens the file: its folder, its lock, its tables, its format; connections with the right settings.

An empty new store is never made silently where an old one was: the wake file, written after the tables,
stays behind as the sign that a store was here.
"""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import apsw

from holdfast.errors import StoreBusy, StoreDamaged, StoreError, StoreMissing, StoreTooNew
from holdfast.file_lock import FileLock
from holdfast.person.private import make_file, make_folder
from holdfast.store.base import FORMAT
from holdfast.store.sqlite import migrate
from holdfast.store.tables import ddl
from holdfast.store.tables.connection import set_pragmas
from holdfast.store.tables.records import title_has

BUSY_MS = 10_000
CACHE_KIB = 8192
"""Pages that a connection keeps: a long session that is opened again needs no reading. Taken as used."""

UNREADABLE = "the disk does not give all of it"

OPENINGS = 5
"""How often a store is opened again that another process has just exchanged."""

MEMORY_BYTES = 1 << 16
"""What must be free to open a log: SQLite begins with half of it."""


class Database:
    """The place of one store: the file and those beside it."""

    def __init__(
        self,
        path: Path,
        *,
        vfs: str = "",
        migrations: Sequence[migrate.Migration] = migrate.MIGRATIONS,
        oldest: int = migrate.OLDEST,
    ) -> None:
        # SQLite follows a link: what lies beside must lie beside the file itself.
        path = path.resolve() if os.path.islink(path) else path  # noqa: PTH114 - raises nothing
        self.path = path
        self.lock_path = path.with_name(path.name + "-lock")
        self.wake_path = wake_path(path)
        self.search_path = path.with_name(path.name + "-search")
        self.log_path = path.with_name(path.name + "-wal")
        self.note_path = path.with_name(path.name + "-exchange")
        """Lies there while the file is exchanged for another."""
        self.readonly = False
        """Whether this user may only read the store; known once it is prepared."""
        self.disk_is_full = False
        """Why it can only be read, where it is so."""
        self.log_is_read = False
        """Whether a log that was left over was looked at, and holds no commit behind damage."""
        self._vfs = vfs
        self._migrations, self._oldest = migrations, oldest

    def exists(self) -> bool:
        """Whether a store is here, or was."""
        return self.path.exists() or self.wake_path.exists()

    def prepare(self, *, create: bool) -> None:
        """Make the store, or bring it up to date; refuse one that is missing, foreign or too new."""
        if is_writable(self.path):
            self._settle()
        if not self.path.exists():
            self._check_missing(create=create)
        elif not is_writable(self.path):
            if not os.access(self.path, os.R_OK):
                raise StoreError(f"{self.path} can neither be read nor written by this user")
            self.readonly = True
            self._check_readable()
            return
        else:
            try:
                if self._is_current():
                    return
            except (apsw.Error, StoreError) as error:
                if not self._is_kept_from_memory(error):
                    raise
                self.readonly = self.disk_is_full = True
                self._check_readable()
                return
        lock = FileLock(self.lock_path)
        try:
            with lock:
                self._prepare()
        finally:
            lock.close()

    def _check_missing(self, *, create: bool) -> None:
        """Whether a store may be made where no file was found."""
        self._settle()
        if _size(self.log_path):
            self._check_file()
        was_here = self.wake_path.exists()
        if self.path.exists():
            return  # An exchange was undone, or another process has made it: the file, and then the sign.
        if was_here:
            raise StoreMissing(
                f"{self.path} is gone although a store was here; bring a backup back with "
                f"`holdfast doctor --restore`, or remove {self.wake_path} to begin again"
            )
        if not create:
            raise StoreMissing(f"there is no store at {self.path}")
        make_folder(self.path.parent)

    def _is_current(self) -> bool:
        """The quick look of every ordinary start: one read, no lock."""
        if not self.wake_path.exists():
            return False
        db = self.connect(readonly=True)
        try:
            return _format(db) == FORMAT and has_indexes(db) and _keeps_log(db)
        finally:
            db.close()

    def _is_kept_from_memory(self, error: Exception) -> bool:
        """Whether only the file of the shared memory did not fit on the disk: no commit is in the log, and no
        process has it open, which would have that file.
        """
        cause = error.__cause__ if isinstance(error, StoreError) else error
        kept = isinstance(cause, apsw.IOError | apsw.FullError | apsw.CantOpenError)
        memory = self.path.with_name(self.path.name + "-shm")
        if not kept or not is_full(self.path) or _size(memory) >= MEMORY_BYTES // 2:
            return False
        return _size(self.log_path) == 0

    def _check_readable(self) -> None:
        """Whether a store that cannot be written can be read as it is."""
        db = self.connect(readonly=True)
        try:
            found = _format(db)
        finally:
            db.close()
        if found is None:
            raise StoreError(f"{self.path} is a database, but not a Holdfast store; name another file")
        if found > FORMAT:
            raise _too_new(self.path, found)
        if found < FORMAT:
            raise StoreError(
                f"{self.path} has format {found} and must be brought up to date, but cannot be written; "
                "copy it to a folder of your own"
            )

    def _prepare(self) -> None:
        make_file(self.path)
        db = self.connect()
        try:
            found = _format(db)
            if found is None:
                self._check_empty(db)
            db.execute("PRAGMA journal_mode=WAL")
            if found is None:
                self._create(db)
            elif found > FORMAT:
                raise _too_new(self.path, found)
            elif found < FORMAT:
                migrate.migrate(db, self.path, found, self._migrations, self._oldest)
            if not has_indexes(db):
                with db:
                    db.execute(ddl.LATER)
            make_file(self.wake_path)
        finally:
            db.close()

    def _check_empty(self, db: apsw.Connection) -> None:
        """No file of another program may be changed, and a store that was here may not be made again."""
        if db.execute("SELECT count(*) FROM sqlite_master").get:
            raise StoreError(f"{self.path} is a database, but not a Holdfast store; name another file")
        if self.wake_path.exists():
            raise StoreMissing(
                f"{self.path} is empty although a store was here; bring a backup back with "
                f"`holdfast doctor --restore`, or remove both it and {self.wake_path} to begin again"
            )

    def _create(self, db: apsw.Connection) -> None:
        with db:
            db.execute(ddl.CREATE + ddl.LATER + ddl.VIEWS)
            db.executemany("INSERT INTO store VALUES (?,?)", _identity())
        sync_folder(self.path.parent)

    def connect(self, *, readonly: bool = False) -> apsw.Connection:
        """A connection. FULL: acknowledged means on the disk, through a power cut too.

        The file that it has locked is the one under the store's name, and stays it: no exchange goes past
        that lock. One that was opened before an exchange and locked behind it is opened again.
        """
        for _ in range(OPENINGS):
            if not self.path.exists():
                self._settle()
            named = _inode(self.path)
            try:
                db = self._open(readonly=readonly)
            except StoreError:
                if _inode(self.path) == named:
                    raise
                continue
            if _inode(self.path) == named:
                return db
            db.close()
        raise StoreBusy(f"{self.path} is exchanged again and again by another process; try again")

    def _open(self, *, readonly: bool) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
        name = str(self.path)
        if self.readonly and self._is_settled():
            name = f"file:{quote(os.fsencode(self.path.absolute()))}?immutable=1"
            flags |= apsw.SQLITE_OPEN_URI
        try:
            db = apsw.Connection(name, flags=flags, vfs=self._vfs or None)
            try:
                db.set_busy_timeout(BUSY_MS)
                if _size(self.log_path) and not self.log_is_read:
                    self._check_log(db)
                db.execute("PRAGMA schema_version").fetchall()  # Now the file is locked.
                self._set_up(db)
            except BaseException:
                db.close()
                raise
        except apsw.Error as error:
            raise translated(error, self.path) from error
        return db

    def _settle(self) -> None:
        """Undo an exchange that was cut off, before the file is taken for a lost one or has two names."""
        if not self.note_path.exists():
            return
        from holdfast.store.sqlite import cut_off

        cut_off.settle(self)

    def _check_file(self) -> None:
        """Refuse to begin anew beside a log that holds commits."""
        from holdfast.store.sqlite import leftover_log

        leftover_log.check_file(self)

    def _check_log(self, db: apsw.Connection) -> None:
        """Refuse a log of which SQLite would drop what was acknowledged."""
        from holdfast.store.sqlite import leftover_log

        leftover_log.check(self, db)

    def _is_settled(self) -> bool:
        """Whether all commits are in the file itself. A log can only be read through memory that processes
        share, in a file beside it that this user may not make.
        """
        try:
            if self.log_path.stat().st_size == 0:
                return True
        except FileNotFoundError:
            return True
        if not self.path.with_name(self.path.name + "-shm").exists():
            raise StoreError(
                f"{self.log_path} holds commits that cannot be read where nothing can be written; "
                "copy it and the store to a folder of your own, and read them there"
            )
        return False

    def _set_up(self, db: apsw.Connection) -> None:
        db.create_scalar_function("title_has", title_has, 2, deterministic=True)
        set_pragmas(
            db,
            "synchronous=FULL",
            "journal_size_limit=16777216",
            "temp_store=MEMORY",
            "trusted_schema=OFF",
            f"cache_size=-{CACHE_KIB}",
        )


def translated(error: apsw.Error, path: Path, *, writing: bool = False) -> StoreError:
    """SQLite's complaint in our own terms; of a full disk that of a change, or of whatever else was asked."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(
                f"{path} is busy: another process has been writing for {BUSY_MS // 1000} s; try again"
            )
        case apsw.NotADBError() if not wake_path(path).exists():
            return StoreError(
                f"{path} is not a SQLite database; name another file, or, if this was a store, restore "
                "a backup or look with `holdfast doctor --salvage NEW` for what is left in it"
            )
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreDamaged(str(path), str(error))
        case apsw.IOError() if is_unreadable(error):
            return StoreDamaged(str(path), UNREADABLE)
        case apsw.FullError() if writing:
            return StoreError(f"the disk that holds {path} is full, so this change was not written")
        case apsw.FullError():
            return full(path)
        case apsw.IOError() if is_full(path):
            return full(path, str(error))
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.ReadOnlyError():
            return StoreError(f"{path} cannot be opened for writing: {error}")
        case _:
            return StoreError(f"{path}: {error}")


def is_unreadable(error: apsw.Error) -> bool:
    """Whether the disk has not given a piece of the file or of its log."""
    # With the second one SQLite says so of a read that the system refused; elsewhere it becomes "malformed".
    return getattr(error, "extendedresult", 0) in (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_CORRUPTFS)


def is_writable(path: Path) -> bool:
    """Whether this user may write a file and what lies beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_full(path: Path) -> bool:
    """Whether the disk has no room for the file in which processes share memory."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < MEMORY_BYTES


def full(path: Path, met: str = "") -> StoreError:
    """The disk is full, whatever was to be done."""
    return StoreError(f"the disk that holds {path} is full{met and f' ({met})'}; make room there")


def unwritable(path: Path, *, disk_is_full: bool) -> StoreError:
    """Why a store that was opened can only be read."""
    if disk_is_full:
        return StoreError(f"the disk that holds {path} was full when it was opened, so it can only be read")
    return StoreError(f"{path} can only be read by this user, not written")


def _too_new(path: Path, found: int) -> StoreTooNew:
    return StoreTooNew(f"{path} has format {found}, this Holdfast knows {FORMAT}; use a newer Holdfast")


def wake_path(path: Path) -> Path:
    """The file beside a store that is touched after each commit: also the sign that a store was here."""
    return path.with_name(path.name + "-wake")


def _format(db: apsw.Connection) -> int | None:
    if db.execute("SELECT 1 FROM sqlite_master WHERE name='store'").get is None:
        return None
    found = db.execute("SELECT value FROM store WHERE key='format'").get
    return None if found is None else int(found)


def _keeps_log(db: apsw.Connection) -> bool:
    """Whether it is in the mode in which readers and writers do not wait for one another; a backup is not."""
    return bool(db.execute("PRAGMA journal_mode").get == "wal")


def has_indexes(db: apsw.Connection) -> bool:
    """Whether those indexes are there that the first stores did not have."""
    names = ", ".join(f"'{name}'" for name in ddl.LATER_NAMES)
    found = db.execute(f"SELECT count(*) FROM sqlite_master WHERE type='index' AND name IN ({names})").get
    return bool(found == len(ddl.LATER_NAMES))


def _identity() -> list[tuple[str, str]]:
    return [("format", str(FORMAT)), ("incarnation", secrets.token_hex(8)), ("horizon", "0")]


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

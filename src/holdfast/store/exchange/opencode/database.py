"""Opens OpenCode's database so that nothing in its folder is written, created or locked against it.

Three cases. A `-shm` beside it: OpenCode runs, or was killed; we share its index read-only (`readonly_shm`),
see all that the write-ahead log holds, and a checkpoint of the living waits for us only while we read.
No `-shm` and no log: the file is whole and is read as immutable. A log without an index, or a rollback
journal: a copy is opened in a folder of our own, because only SQLite can put them together, by writing.
"""

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import apsw

from holdfast.errors import InvalidInput, NotFound

BUSY_MS: Final = 5_000
_MAGIC: Final = b"SQLite format 3\0"
_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class ReadOnly:
    """A connection that only reads. Each `with` is one snapshot, kept short for the sake of the living."""

    def __init__(self, path: Path) -> None:
        _check(path)
        self.path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._frozen: tuple[int, int] | None = None
        """The file as it was when we took it for immutable."""
        try:
            self._db = self._open()
        except apsw.Error as error:
            self.close()
            raise InvalidInput(f"{path} cannot be opened as a database: {error}") from error

    def rows(self, sql: str, *bindings: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self._db.execute(sql, bindings).fetchall()

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns; none if there is no such table."""
        # A view could compute for ever; only tables are looked into.
        if not self.rows("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", table):
            return []
        return [row[0] for row in self.rows("SELECT name FROM pragma_table_info(?)", table)]

    def __enter__(self) -> Self:
        if self._frozen is not None and self._frozen != self._state():
            self._db.close()  # OpenCode has begun to write since: read beside it from now on
            self._db = self._open()
        self._db.execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._db.get_autocommit():
            self._db.execute("ROLLBACK")
        if error is None and self._frozen is not None and self._frozen != self._state():
            raise InvalidInput(f"{self.path} was written to while it was read; import again")

    def close(self) -> None:
        """Close it, and remove the copy if there is one."""
        db: apsw.Connection | None = getattr(self, "_db", None)
        if db is not None:
            db.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _open(self) -> apsw.Connection:
        self._frozen = None
        if _size(self.path, "-journal"):
            return self._copy()
        if _exists(self.path, "-shm"):
            try:
                return _connect(self.path, "mode=ro&readonly_shm=1")
            except (apsw.CantOpenError, apsw.ReadOnlyError):
                pass  # an index without its log, or one that cannot be mended without writing
        if _size(self.path, "-wal"):
            return self._copy()
        self._frozen = self._state()
        return _connect(self.path, "mode=ro&immutable=1")

    def _state(self) -> tuple[int, int]:
        status = self.path.stat()
        return status.st_mtime_ns, _size(self.path, "-wal")

    def _copy(self) -> apsw.Connection:
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-import-")
        copy = Path(self._folder.name) / "copy.db"
        try:
            for suffix in ("", "-wal", "-journal"):
                if not suffix or _exists(self.path, suffix):
                    shutil.copyfile(f"{self.path}{suffix}", f"{copy}{suffix}")
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be copied to be read: {error}") from error
        return _connect(copy, "mode=rw", apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)


def _connect(path: Path, options: str, flags: int = _FLAGS) -> apsw.Connection:
    db = apsw.Connection(f"file:{quote(str(path.absolute()))}?{options}", flags=flags)
    try:
        db.set_busy_timeout(BUSY_MS)
        db.execute("PRAGMA query_only=1").fetchall()
        # A hostile schema may hold triggers and views; none of its functions shall run for us.
        db.execute("PRAGMA trusted_schema=0").fetchall()
        db.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def _check(path: Path) -> None:
    try:
        if not path.is_file():
            raise NotFound(f"{path} is not a file")
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise InvalidInput(f"{path} is not an SQLite database")


def _exists(path: Path, suffix: str) -> bool:
    return Path(f"{path}{suffix}").is_file()


def _size(path: Path, suffix: str) -> int:
    return Path(f"{path}{suffix}").stat().st_size if _exists(path, suffix) else 0

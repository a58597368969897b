"""The index: the tables of the SQLite store without their content, derived from the tree and rebuildable.

`record.data` is empty for a record that lives, `~` for one that lies aside of its natural place, NULL for a
tombstone. A row of `store` tells how much of the journal the index has seen. It need not survive a power
cut (`synchronous=NORMAL`): the journal, or else the tree, brings it back.
"""

import os
from pathlib import Path

import apsw

from holdfast.errors import StoreDamaged, StoreError
from holdfast.person.private import make_file
from holdfast.store.base import FORMAT
from holdfast.store.columns import SessionColumns
from holdfast.store.files.journal import Mark, parse_mark
from holdfast.store.sqlite.database import Database, has_indexes
from holdfast.store.tables import ddl
from holdfast.store.tables.connection import Connection

_COLUMNS = ", ".join(SessionColumns.__struct_fields__)
CHECKPOINT_PAGES = 4000
"""A checkpoint waits for the disk; a log of 16 MB is still quick to read."""


class Index(Database):
    """The place of the index: `index.db` in the store's root."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "index.db")
        self.wake_path = root / "wake"
        self._name = str(self.path)

    def connect(self, *, readonly: bool = False) -> apsw.Connection:
        """A connection that does not wait for the disk."""
        db = super().connect(readonly=readonly)
        # One statement each: a pragma that answers with a row would keep the next from being carried out.
        for setting in ("synchronous=NORMAL", "temp_store=MEMORY", f"wal_autocheckpoint={CHECKPOINT_PAGES}"):
            db.execute(f"PRAGMA {setting}").fetchall()
        return db

    def _check_log(self, db: apsw.Connection) -> None:
        """Whatever its log has lost, the journal or the tree has."""

    def identity(self) -> int:
        """Which file it is now; it changes when the index was replaced, and is 0 when it is gone."""
        try:
            return os.stat(self._name).st_ino  # noqa: PTH116 - asked before each piece of work
        except FileNotFoundError:
            return 0

    def is_usable(self) -> bool:
        """Whether the file is an index of this format that says how far it has come."""
        if not self.identity():
            return False
        try:
            db = self.connect(readonly=True)
            try:
                found: dict[str, str] = dict(db.execute("SELECT key, value FROM store").fetchall())  # type: ignore[arg-type]
                _check_columns(db)
                return found.get("format") == str(FORMAT) and "journal" in found and has_indexes(db)
            finally:
                db.close()
        except (apsw.Error, StoreError, OSError, ValueError):
            return False

    def empty(self) -> apsw.Connection:
        """An index without rows, in a transaction of its own: the old file if it is sound, else a new one."""
        try:
            return self._emptied()
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
            self.discard()
            return self._emptied()

    def _emptied(self) -> apsw.Connection:
        if not self.identity():
            self.discard()  # A write-ahead log without its database would spoil the new one.
        make_file(self.path)
        try:
            db = self.connect()
        except StoreError as error:
            if not isinstance(error, StoreDamaged) and not isinstance(error.__cause__, apsw.NotADBError):
                raise  # A full disk, say: the index may be sound, and could not be made again.
            self.discard()  # Not a database at all.
            make_file(self.path)
            db = self.connect()
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("BEGIN IMMEDIATE")
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
            if names:
                _check_columns(db)
                for name in ("store", "session", "record", "owner", "quarantine"):
                    db.execute(f"DELETE FROM {name}")
            else:
                db.execute(ddl.CREATE)
            db.execute(ddl.LATER)
        except BaseException:
            db.close()
            raise
        return db

    def discard(self) -> None:
        """Throw the file away; a process that has it open notices by its identity."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)


def _check_columns(db: Connection) -> None:
    """`apsw.SQLError` for tables that lack a column of ours: whatever they hold, the tree has it."""
    db.execute(f"SELECT {_COLUMNS} FROM session LIMIT 0")


def read_mark(db: Connection) -> Mark:
    """How far the index has come."""
    return parse_mark(db.execute("SELECT value FROM store WHERE key='journal'").get)


def write_mark(db: Connection, mark: Mark) -> None:
    """Note how far the index has come, with what it has taken."""
    db.execute("INSERT OR REPLACE INTO store VALUES ('journal', ?)", (mark.text(),))

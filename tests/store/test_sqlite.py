"""What only the SQLite engine promises: its settings, its format, its migrations, its backups."""

import contextlib
from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError, StoreMissing, StoreTooNew
from holdfast.store.batch import Batch
from holdfast.store.query import SessionQuery
from holdfast.store.sqlite.connection import Connection
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import S1, session, user


async def made(path: Path) -> None:
    """A store with one session."""
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), user(1))))
    await store.close()


async def test_every_connection_is_durable_and_bounded(tmp_path: Path) -> None:
    """WAL, FULL, a bounded log, nothing of the schema trusted."""
    path = tmp_path / "store.db"
    await made(path)
    for readonly in (False, True):
        db = Database(path).connect(readonly=readonly)
        pragmas = ("journal_mode", "synchronous", "journal_size_limit", "temp_store", "trusted_schema")
        assert [db.execute(f"PRAGMA {name}").get for name in pragmas] == ["wal", 2, 16777216, 2, 0]
        db.close()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    """With a clear message, and nothing is changed."""
    path = tmp_path / "store.db"
    await made(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE store SET value='99' WHERE key='format'")
    with pytest.raises(StoreTooNew, match="format 99"):
        await SqliteStore.open(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT value FROM store WHERE key='format'").get == "99"


async def test_a_store_that_vanished_is_not_made_anew(tmp_path: Path) -> None:
    """Neither when the file is gone nor when it is empty; a new place is made without a question."""
    path = tmp_path / "store.db"
    await made(path)
    path.unlink()
    with pytest.raises(StoreMissing, match="restore a backup"):
        await SqliteStore.open(path)
    path.touch()
    with pytest.raises(StoreMissing, match="is empty although"):
        await SqliteStore.open(path)
    with pytest.raises(StoreMissing, match="there is no store"):
        await SqliteStore.open(tmp_path / "other.db", create=False)
    assert not (tmp_path / "other.db").exists()


async def older(path: Path) -> None:
    """A store of a format before ours."""
    await made(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE store SET value='0' WHERE key='format'")


async def test_a_migration_makes_a_backup_first_and_runs_whole(tmp_path: Path) -> None:
    """One transaction; the backup holds the old format."""
    path = tmp_path / "store.db"
    await older(path)

    def step(db: Connection) -> None:
        db.execute("UPDATE session SET title='migrated'")

    store = await SqliteStore.open(path, database=Database(path, migrations=(step,), oldest=0))
    assert [record.id for record in (await store.sessions(SessionQuery())).sessions] == [S1]
    await store.close()
    with contextlib.closing(apsw.Connection(str(tmp_path / "store.db.format-0.backup"))) as db:
        assert db.execute("SELECT value FROM store WHERE key='format'").get == "0"
        assert db.execute("SELECT count(*) FROM record").get == 1


async def test_a_migration_that_would_lose_records_is_undone(tmp_path: Path) -> None:
    """Counts are verified before the commit; the store stays as it was, and so does its format."""
    path = tmp_path / "store.db"
    await older(path)
    before = None
    with contextlib.closing(apsw.Connection(str(path))) as db:
        before = db.execute("SELECT * FROM record").fetchall()

    def step(db: Connection) -> None:
        db.execute("DELETE FROM record")

    with pytest.raises(StoreError, match="records would have been lost"):
        await SqliteStore.open(path, database=Database(path, migrations=(step,), oldest=0))
    with contextlib.closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT * FROM record").fetchall() == before
        assert db.execute("SELECT value FROM store WHERE key='format'").get == "0"


async def test_a_backup_is_a_store_of_its_own(tmp_path: Path) -> None:
    """Made while the store is open; another incarnation, no owners; never over a file."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), user(1))))
    cursor = await store.head()
    await store.backup(str(copy))
    with pytest.raises(StoreError, match="exists already"):
        await store.backup(str(copy))
    await store.close()

    other = await SqliteStore.open(copy)
    assert type(await other.changes(cursor)).__name__ == "Resync"
    assert (await other.session(S1)) is not None
    assert (await other.examine()).findings == ()
    await other.close()

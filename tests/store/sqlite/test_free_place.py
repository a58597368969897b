"""Where a new store may be written: nothing of another lies there."""

from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreError
from holdfast.store.batch import Batch
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.rescue import salvage
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import session


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
async def test_a_log_of_a_file_that_is_gone_is_named(tmp_path: Path, suffix: str) -> None:
    """SQLite would play it into a backup, or a salvaged store, when that is opened first: neither is made."""
    target, left = tmp_path / "new.db", tmp_path / f"new.db{suffix}"
    left.write_bytes(b"a log")
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.commit(Batch((session(),)))
    with pytest.raises(StoreError, match=f"{left} is left of a file that is gone"):
        await store.backup(str(target))
    await store.close()
    with pytest.raises(StoreError, match=f"{left} is left of a file that is gone"):
        salvage(Database(tmp_path / "store.db"), target, SystemClock())
    assert not target.exists()
    assert left.read_bytes() == b"a log"

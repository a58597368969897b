"""The locks of SQLite on the files of a store stay, whatever this process does beside it.

The close of any descriptor of a file gives up all locks that the process has on it. Another program that
opens the store then takes itself for the last one, and removes the log under us.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast.store.batch import Batch
from holdfast.store.query import SearchQuery
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session
from tests.store.sqlite import damage

LOCKED = 3
TRY = f"""
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 512, 0x40000000)
    except OSError:
        sys.exit({LOCKED})
"""


def is_locked(path: Path) -> bool:
    """Whether another process is kept from the bytes that SQLite locks."""
    done = subprocess.run([sys.executable, "-c", TRY, str(path)], check=False, timeout=60)
    assert done.returncode in (0, LOCKED)
    return done.returncode == LOCKED


@pytest.mark.parametrize("how", ["new", "copied", "older"])
async def test_a_store_that_is_opened_twice_at_once_is_locked(tmp_path: Path, how: str) -> None:
    """A new one; one that was copied by hand, without its sign; an older one, which gets an index."""
    path = tmp_path / "s.db"
    if how != "new":
        await (await SqliteStore.open(path)).close()
    if how == "copied":
        (tmp_path / "s.db-wake").unlink()
    if how == "older":
        db = apsw.Connection(str(path))
        db.execute("DROP INDEX record_few")
        db.close()
    for _ in range(4):
        first = await SqliteStore.open(path)  # Its locks are what the second opening could give up.
        if how == "older":
            (tmp_path / "s.db-wake").unlink()
        second, third = await asyncio.gather(SqliteStore.open(path), SqliteStore.open(path))
        await first.commit(Batch((session(),)))
        assert is_locked(path)
        for each in (third, second, first):
            await each.close()
        (tmp_path / "s.db-wake").unlink()


async def test_an_examination_of_a_damaged_store_leaves_the_locks(tmp_path: Path) -> None:
    """It reads the file beside SQLite; what it opened is closed when the store is."""
    path = tmp_path / "s.db"
    await damage.make(path)
    data = path.read_bytes()
    path.write_bytes(damage.hit(data, damage.leaves(path, "record")[3], damage.garbage(4096, 1)))
    store = await SqliteStore.open(path)
    try:
        await store.commit(Batch((session(ses(51)),)))
        assert (await store.examine()).findings
        held = open_descriptors(path)
        await store.examine()
        assert is_locked(path)
        assert open_descriptors(path) == held
    finally:
        await store.close()
    assert open_descriptors(path) == 0


def open_descriptors(path: Path) -> int:
    """How many descriptors of a file this process has."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += each.readlink() == path
        except FileNotFoundError:
            continue
    return found


async def test_a_second_reader_of_the_search_index_leaves_the_locks(tmp_path: Path) -> None:
    """Each reader opens the index when it is searched first."""
    store = await SqliteStore.open(tmp_path / "s.db")
    try:
        await store.commit(Batch((session(),)))
        await store.search(SearchQuery("AAAA"))
        await asyncio.gather(*(store.search(SearchQuery("AAAA")) for _ in range(12)))
        assert is_locked(tmp_path / "s.db-search")
    finally:
        await store.close()

"""A user who may only read keeps a store open while its owner goes on working."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StoreBusy, StoreDamaged
from holdfast.store.batch import Batch
from holdfast.store.query import SearchQuery
from holdfast.store.record import Changes
from holdfast.store.sqlite import database
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session


async def opened_to_read(path: Path) -> SqliteStore:
    """A store as by a user who may not write it, and without a log, so that nothing can be locked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "is_writable", lambda _: False)
        store = await SqliteStore.open(path, create=False)
    assert store.database.readonly
    return store


async def ids(store: SqliteStore) -> list[str]:
    """What its feed has from the beginning."""
    changes = await store.changes(None, None)
    assert isinstance(changes, Changes)
    return [each.record.id for each in changes.records]


@pytest.mark.parametrize("is_closed", [False, True])
async def test_what_its_owner_writes_is_seen(tmp_path: Path, is_closed: bool) -> None:
    """With its log, while the owner has it open; from the file itself, when it is closed."""
    owner = await SqliteStore.open(tmp_path / "s.db")
    await owner.commit(Batch((session(ses(1)),)))
    await owner.close()
    reading = await opened_to_read(tmp_path / "s.db")
    try:
        assert await ids(reading) == [ses(1)]
        owner = await SqliteStore.open(tmp_path / "s.db")
        await owner.commit(Batch((session(ses(2)),)))
        if is_closed:
            await owner.close()
        assert await ids(reading) == [ses(1), ses(2)]
        if not is_closed:
            await owner.commit(Batch((session(ses(3)),)))
            assert await ids(reading) == [ses(1), ses(2), ses(3)]
            await owner.close()
    finally:
        await reading.close()


async def hits(store: SqliteStore) -> set[int]:
    """How many are found by any of its readers."""
    found = await asyncio.gather(*(store.search(SearchQuery("walrus")) for _ in range(20)))
    return {len(each.hits) for each in found}


async def test_a_search_looks_at_the_file_of_now(tmp_path: Path) -> None:
    """Its index is made in memory, from what was there when it was searched first."""
    owner = await SqliteStore.open(tmp_path / "s.db")
    await owner.commit(Batch((session(ses(1), title="walrus"),)))
    await owner.close()
    reading = await opened_to_read(tmp_path / "s.db")
    try:
        assert await hits(reading) == {1}
        owner = await SqliteStore.open(tmp_path / "s.db")
        await owner.commit(Batch((session(ses(2), title="walrus too"),)))
        await owner.close()
        assert await hits(reading) == {2}
    finally:
        await reading.close()


async def test_beside_a_log_a_reading_is_of_one_moment(tmp_path: Path) -> None:
    """SQLite sees to that: what is committed meanwhile is no reason to read again."""
    owner = await SqliteStore.open(tmp_path / "s.db")
    await owner.commit(Batch((session(ses(1)),)))
    reading, tried = await opened_to_read(tmp_path / "s.db"), 0

    def work(connection: Any) -> None:
        nonlocal tried
        tried += 1
        with owner.database.log_path.open("ab"):
            os.utime(owner.database.log_path, ns=(tried, tried))

    try:
        await reading.read(work)
        assert tried == 1
    finally:
        await reading.close()
        await owner.close()


async def test_what_is_written_in_the_middle_of_a_reading_is_no_damage(tmp_path: Path) -> None:
    """It is read again; if it is written again and again, the caller is told so."""
    path = tmp_path / "s.db"
    owner = await SqliteStore.open(path)
    await owner.commit(Batch((session(ses(1)),)))
    await owner.close()
    reading, left, tried = await opened_to_read(path), 1, 0

    def work(connection: Any) -> str:
        nonlocal left, tried
        tried += 1
        if left:
            left -= 1
            found = path.stat()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000))
            raise StoreDamaged(str(path), "rows of two moments")
        return "read"

    try:
        assert (await reading.read(work), tried) == ("read", 2)
        left = 100
        with pytest.raises(StoreBusy, match="was written by another user while it was read; try again"):
            await reading.read(work)
    finally:
        await reading.close()


async def test_damage_that_nobody_has_just_written_is_damage(tmp_path: Path) -> None:
    """Said at once, and the store is read once."""
    owner = await SqliteStore.open(tmp_path / "s.db")
    await owner.commit(Batch((session(ses(1)),)))
    await owner.close()
    reading, tried = await opened_to_read(tmp_path / "s.db"), 0

    def work(connection: Any) -> str:
        nonlocal tried
        tried += 1
        raise StoreDamaged("s.db", "a page")

    try:
        with pytest.raises(StoreDamaged):
            await reading.read(work)
        assert tried == 1
    finally:
        await reading.close()

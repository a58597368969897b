"""A store on a disk without a free byte: what is whole is read, and what is said is about the disk."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError
from holdfast.store.base import Store
from holdfast.store.batch import Batch
from holdfast.store.files.index import Index
from holdfast.store.files.store import FilesStore
from holdfast.store.query import MessageQuery
from holdfast.store.sqlite.database import translated
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import S1, session, user


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file of this process can grow, and none is made larger than nothing."""
    limits, statvfs = resource.getrlimit(resource.RLIMIT_FSIZE), os.statvfs

    def without_room(path: Path) -> os.statvfs_result:
        found = list(statvfs(path))
        found[4] = 0  # f_bavail
        return os.statvfs_result(found)

    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", without_room)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("engine", [SqliteStore, FilesStore])
async def test_a_store_that_was_closed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: type[SqliteStore | FilesStore]
) -> None:
    """Memory that processes share needs room on the disk, and is not needed without a log."""
    path = tmp_path / "store"
    store: Store = await engine.open(path)
    await store.commit(Batch((session(), user(1))))
    await store.close()

    with full_disk(monkeypatch):
        store = await engine.open(path)
        assert len((await store.messages(MessageQuery(S1))).messages) == 1
        assert (await store.examine()).clean
        with pytest.raises(StoreError, match="was full when it was opened, so it can only be read"):
            await store.commit(Batch((user(2),)))
        await store.close()

    store = await engine.open(path)
    await store.commit(Batch((user(2),)))
    assert len((await store.messages(MessageQuery(S1))).messages) == 2
    await store.close()


async def test_commits_that_lie_in_a_log_are_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cannot be read without that memory: the full disk is named."""
    path = tmp_path / "store"
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), user(1))))
    log = (tmp_path / "store-wal").read_bytes()
    data = path.read_bytes()
    await store.close()
    assert log
    path.write_bytes(data)
    (tmp_path / "store-wal").write_bytes(log)
    with full_disk(monkeypatch), pytest.raises(StoreError) as caught:
        await SqliteStore.open(path)
    assert str(caught.value) == f"the disk that holds {path} is full (disk I/O error); make room there"


async def test_an_index_that_is_sound_is_not_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be opened, and could not be made again either."""
    await (await FilesStore.open(tmp_path / "store")).close()
    index = Index(tmp_path / "store")
    before = index.path.read_bytes()
    with full_disk(monkeypatch), pytest.raises(StoreError, match="is full"):
        index.empty()
    assert index.path.read_bytes() == before


def test_only_a_change_is_said_to_be_unwritten() -> None:
    """Whoever reads has changed nothing."""
    path = Path("/x/store")
    said = [str(translated(apsw.FullError(), path, writing=writing)) for writing in (False, True)]
    assert said == [
        "the disk that holds /x/store is full; make room there",
        "the disk that holds /x/store is full, so this change was not written",
    ]

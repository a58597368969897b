"""What lies beside a store, and what a backup makes: nothing that the user has not named."""

from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.store.batch import Batch
from holdfast.store.open import open_store
from holdfast.testing.store_contract.build import session


@pytest.mark.parametrize("engine", ["sqlite", "file"])
async def test_a_store_reached_by_a_link_is_the_same_store(tmp_path: Path, engine: str) -> None:
    """One lock and one wake file, beside the store itself: two of them would let two writers in."""
    real, link = tmp_path / "real" / "store", tmp_path / "link" / "store"
    first = await open_store(f"{engine}://{real}")
    link.parent.mkdir()
    link.symlink_to(real)
    second = await open_store(f"{engine}://{link}")
    try:
        await first.commit(Batch((session(),)))
        found = await second.session(session().id)
    finally:
        await second.close()
        await first.close()

    assert found is not None
    assert list(link.parent.iterdir()) == [link]


@pytest.mark.parametrize("engine", ["sqlite", "file"])
async def test_a_backup_makes_no_folders_on_its_way(tmp_path: Path, engine: str) -> None:
    """A folder that is missing is named: it may be a disk that is not there."""
    store = await open_store(f"{engine}://{tmp_path}/store")
    try:
        with pytest.raises(StoreError, match=f"{tmp_path}/missing/deep is no folder; make it, or name"):
            await store.backup(f"{tmp_path}/missing/deep/copy")
    finally:
        await store.close()

    assert not (tmp_path / "missing").exists()

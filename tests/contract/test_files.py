"""The store contract over the files store."""

from pathlib import Path

import pytest

from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.files.layout import record_path
from holdfast.store.files.store import FilesStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract import DamageContract, StoreContract, World


@pytest.mark.ci("a few hundred small ones; the quick tests hold the contract against SQLite")
class TestFiles(StoreContract):
    """Every promise, on a tree of files."""

    async def open(self, place: Path, clock: FakeClock, host: FakeHost) -> Store:
        return await FilesStore.open(place / "storage", clock=clock, host=host)


class TestDamagedFiles(DamageContract):
    """Damage under the tree."""

    open = TestFiles.open

    async def damage(self, world: World, put: Put) -> None:
        path = world.place / "storage" / record_path(put.kind, put.session, put.id, put.parent)
        assert path.exists()
        path.write_bytes(b"{")

    def ahead(self, cursor: str) -> str:
        incarnation, number = cursor.split(".")
        return f"{incarnation}.{int(number, 16) + 1000:x}"

"""A row of an owner that cannot be read, in a store on one machine."""

from pathlib import Path

import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.store.batch import Batch, Held
from holdfast.store.files.store import FilesStore
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session
from holdfast.testing.store_contract.world import granted


@pytest.mark.parametrize("kind", [SqliteStore, FilesStore])
async def test_an_owner_that_cannot_be_read_stops_nobody(
    tmp_path: Path, kind: type[SqliteStore | FilesStore]
) -> None:
    """It keeps what it claimed until it is late; others claim, bury and read."""
    place, host = tmp_path / "s", FakeHost()
    store = await kind.open(place, clock=SystemClock(), host=host)
    await store.commit(Batch((session(),)))
    for id in ("o1", "o2"):
        await store.register(host.owner(id))
    granted(await store.claim(S1, "o1"))
    (file,) = [each for each in (place, *place.rglob("*")) if each.is_file() and has_owners(each)]
    apsw.Connection(str(file)).execute("UPDATE owner SET data='{broken' WHERE id='o1'")

    assert await store.claim(S1, "o2") == Held(S1, "o1")
    assert list(await store.bury("o2")) == []
    found = await store.session(S1)
    assert found is not None
    assert found.owner == "o1"
    report = await store.examine()
    assert [(each.what, each.where) for each in report.findings] == [("its row cannot be read", "owner o1")]
    await store.close()


def has_owners(file: Path) -> bool:
    with file.open("rb") as opened:
        if opened.read(6) != b"SQLite":
            return False
    return bool(
        apsw.Connection(str(file)).execute("SELECT 1 FROM sqlite_master WHERE name='owner'").fetchall()
    )

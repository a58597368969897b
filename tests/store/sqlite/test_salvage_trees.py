"""Salvage believes no page that reads cleanly and is wrong: of another table or index, or one bit off."""

from pathlib import Path

import anyio
import pytest

from holdfast.clock import SystemClock
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.rescue import salvage
from tests.store.sqlite import damage

Rows = dict[str, tuple[object, list[tuple[object, ...]]]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose tables have inner pages."""
    path = tmp_path_factory.mktemp("salvage") / "store.db"
    anyio.run(damage.few, path)
    data, roots = path.read_bytes(), damage.roots(path)
    assert {damage.page(data, roots[name])[0] for name in ("session", "record")} == {5}
    return path


def salvaged(path: Path, data: bytes) -> tuple[SalvageReport, Rows]:
    """What comes back of a store when its file is this."""
    hurt, new = path.with_name("hurt.db"), path.with_name("new.db")
    hurt.write_bytes(data)
    new.unlink(missing_ok=True)
    report = salvage(Database(hurt), new, SystemClock())
    return report, damage.rows(new)


@pytest.mark.parametrize("table", ["record", "session"])
@pytest.mark.parametrize("other", ["record", "session", "quarantine"])
def test_a_root_that_is_another_tables_loses_nothing(store: Path, table: str, other: str) -> None:
    """The root overwritten with that of another table, inner or empty: every leaf is found without it."""
    sound, data, roots = damage.rows(store), store.read_bytes(), damage.roots(store)
    report, came = salvaged(store, damage.hit(data, roots[table], damage.page(data, roots[other])))
    assert came == sound
    assert report.complete


@pytest.mark.parametrize("bit", range(3))
def test_an_inner_page_that_lost_some_of_its_cells_loses_no_row(store: Path, bit: int) -> None:
    """One bit in the number of cells of an inner page: the tree reads cleanly, and is too small."""
    sound, data = damage.rows(store), store.read_bytes()
    root = bytearray(damage.page(data, damage.roots(store)["record"]))
    root[4] ^= 1 << bit
    _, came = salvaged(store, damage.hit(data, damage.roots(store)["record"], bytes(root)))
    assert came == sound

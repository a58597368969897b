"""What is left in a damaged SQLite file comes back, whatever page of it was hit."""

import contextlib
from pathlib import Path

import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.store.batch import Batch
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.examine import examine
from holdfast.store.sqlite.salvage.rescue import salvage, survey
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, user
from tests.store.sqlite import damage

CLOCK = SystemClock()
CUTS = 20


Rows = dict[str, tuple[object, list[tuple[object, ...]]]]


def salvaged(path: Path, target: Path, sound: Rows | None = None) -> Rows:
    """The sessions that a salvage brings; the new store is sound. Of those that are `sound` no loss is kept
    secret: what differs is in part, gone, or at least in doubt, and certainly in part where its end is gone.
    """
    report = salvage(Database(path), target, CLOCK)
    database = Database(target)
    with contextlib.closing(database.connect()) as db:
        found = examine(db, database, CLOCK, repair=False)
    assert found.findings == ()
    came = damage.rows(target)
    assert set(report.whole) <= set(came)
    assert {each.id for each in report.incomplete} <= set(came)
    if sound is not None:
        assert {id for id in report.whole if came[id] != sound[id]} <= set(report.doubtful)
        assert [id for id in report.whole if came[id][1][-1:] != sound[id][1][-1:]] == []
    return {id: rows for id, rows in came.items() if id in report.whole or not id.startswith("ses_")}


@pytest.mark.ci
@pytest.mark.parametrize("page_size", [4096, 512])
async def test_every_session_comes_back_whose_pages_were_not_hit(tmp_path: Path, page_size: int) -> None:
    """Each page overwritten in turn, and 20 cuts: whole is whatever has no record on a page that was hit.

    SQLite itself says which pages are leaves and chains of the two tables, and the bytes say whose. Small
    pages make the trees deep; that a file has them is only said by its first page.
    """
    path, hurt = tmp_path / "store.db", tmp_path / "hurt.db"
    await damage.make(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA journal_mode=DELETE").fetchall()
        if page_size != 4096:
            db.execute(f"PRAGMA page_size={page_size}").fetchall()
            db.execute("VACUUM")
    sound, tenants, data = damage.rows(path), damage.tenants(path), path.read_bytes()
    count = len(data) // page_size
    assert count >= 50

    hits: list[tuple[set[int], bytes]] = []
    for number in range(1, count + 1) if page_size == 4096 else range(2, count + 1, 17):
        at = (number - 1) * page_size
        hits.append(({number}, data[:at] + damage.garbage(page_size, number) + data[at + page_size :]))
    for cut in range(1, CUTS + 1):
        size = len(data) * cut // (CUTS + 1)
        hits.append((set(range(size // page_size + 1, count + 1)), data[:size]))
    for trial, (pages, bytes_) in enumerate(hits):
        hurt.write_bytes(bytes_)
        spared = {id for id in sound if not any(id in tenants.get(page, ()) for page in pages)}
        came = salvaged(hurt, tmp_path / f"new-{trial}.db", sound)
        missing = {id for id in spared if came.get(id) != sound[id]}
        assert missing == set(), sorted(pages)[:3]
        assert ses(damage.ERASED) not in damage.rows(tmp_path / f"new-{trial}.db")
        (tmp_path / f"new-{trial}.db").unlink()


async def test_a_sound_store_is_salvaged_whole(tmp_path: Path) -> None:
    """Every row as it was, also those that are still in the log only."""
    path = tmp_path / "store.db"
    await damage.make(path)
    sound = damage.rows(path)
    store = await SqliteStore.open(path)
    await store.commit(Batch((user(999_999, session=ses(1)),)))
    try:
        assert Database(path).log_path.stat().st_size > 0
        report = survey(Database(path), CLOCK)
        came = salvaged(path, tmp_path / "new.db")
    finally:
        await store.close()

    assert report.complete
    assert set(report.whole) == {id for id in sound if id.startswith("ses_")}
    assert came == damage.rows(path)
    assert len(came[ses(1)][1]) == len(sound[ses(1)][1]) + 1


@pytest.mark.ci
async def test_a_page_without_its_head_still_has_its_rows(tmp_path: Path) -> None:
    """Each leaf of records loses its first 64 bytes in turn: rows are found by their shape, in their newest
    state, and none that was removed comes back.
    """
    path, hurt = tmp_path / "store.db", tmp_path / "hurt.db"
    await damage.make(path)
    sound, data = damage.rows(path), path.read_bytes()
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        leaves = db.execute("SELECT pageno FROM dbstat WHERE name='record' AND pagetype='leaf'").fetchall()
    for number in [int(str(page)) for (page,) in leaves[::6]]:
        at = (number - 1) * 4096
        hurt.write_bytes(data[:at] + damage.garbage(64, number) + data[at + 64 :])
        assert salvaged(hurt, tmp_path / f"new-{number}.db") == sound


def test_nothing_at_all_is_left_of_garbage(tmp_path: Path) -> None:
    """A file of another kind, or of nothing, gives an empty report and an empty store."""
    for size in (0, 1, 100, 40_000):
        path, new = tmp_path / f"{size}.db", tmp_path / f"{size}-new.db"
        path.write_bytes(damage.garbage(size, size))
        assert (salvaged(path, new), survey(Database(path), CLOCK).whole) == ({}, ())

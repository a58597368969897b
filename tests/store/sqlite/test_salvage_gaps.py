"""What is missing without a name is said: a salvage is complete only where nothing can have been left out."""

import contextlib
import shutil
from pathlib import Path

import anyio
import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.store.batch import Batch
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage import rescue
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.rows import record_row
from holdfast.store.sqlite.salvage.tree import walk_table
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session, user
from tests.store.sqlite.damage import PAGE, hit, leaves, roots

COUNT = 300


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many sessions in the file, and one more commit in the log that a killed process left."""
    path = tmp_path_factory.mktemp("gaps") / "left.db"
    anyio.run(_leave, path)
    return path


async def _leave(path: Path) -> None:
    opened = path.with_name("opened.db")
    store = await SqliteStore.open(opened)
    try:
        many = range(1, COUNT + 1)
        both = [(session(ses(n)), user(1_000_000 + n, session=ses(n))) for n in many]
        await store.commit(Batch(tuple(record for pair in both for record in pair)))
        with contextlib.closing(apsw.Connection(str(opened))) as db:
            db.execute("PRAGMA schema_version").fetchall()
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        await store.commit(Batch((session(ses(COUNT + 1)),)))
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(f"{opened}{suffix}", f"{path}{suffix}")
    finally:
        await store.close()


def surveyed(left: Path, tmp_path: Path, data: bytes | None, *, logged: bool) -> SalvageReport:
    """What a salvage would bring of other bytes in the place of the file."""
    path = tmp_path / "store.db"
    if data is not None:
        path.write_bytes(data)
    if logged:
        shutil.copyfile(f"{left}-wal", f"{path}-wal")
    return rescue.survey(Database(path), SystemClock())


def test_a_sound_store_has_no_gaps(left: Path, tmp_path: Path) -> None:
    """All that is in the file and in the log is there."""
    report = surveyed(left, tmp_path, left.read_bytes(), logged=True)
    assert (len(report.whole), report.gaps, report.complete) == (COUNT + 1, (), True)


@pytest.mark.parametrize("data", [None, b""])
def test_a_log_without_its_file_is_not_complete(left: Path, tmp_path: Path, data: bytes | None) -> None:
    """It has the pages that were written last, and says how many it does not have."""
    report = surveyed(left, tmp_path, data, logged=True)
    assert 0 < len(report.whole) < COUNT
    assert report.gaps[0].endswith(f" of {report.pages} pages were in the file, which is gone or empty")
    assert (report.complete, report.unproved) == (False, True)


@pytest.mark.parametrize("pages", [1, 2, 30])
def test_a_file_that_was_cut_short_is_not_complete(left: Path, tmp_path: Path, pages: int) -> None:
    """Its head says how many pages there were, also where no table can be reached any more."""
    sound = left.read_bytes()
    report = surveyed(left, tmp_path, sound[: pages * PAGE], logged=False)
    count = len(sound) // PAGE
    assert report.gaps[0] == f"{count - pages} of {count} pages are missing: the file was cut short"
    assert (report.complete, report.unproved) == (False, True)


def report_of(
    *, doubtful: tuple[str, ...] = (), gaps: tuple[str, ...] = (), log: str = "", lost: tuple[str, ...] = ()
) -> SalvageReport:
    """A report with one thing wrong."""
    return SalvageReport((), (), lost, doubtful, 0, 1, 0, gaps, log=log)


def test_a_session_is_in_doubt_where_a_lost_page_had_its_keys(left: Path, tmp_path: Path) -> None:
    """Of a leaf of records nothing is left, nor of the index of their names: whole without a doubt are those
    sessions of which nothing can have been on that page, and in part those whose latest number is missing.
    """
    sound, root = left.read_bytes(), roots(left)["record"]
    hurt = hit(sound, leaves(left, "record")[2], bytes(PAGE))
    had, has = (
        {row.session for row in walk_table(Pages(each), root, record_row).rows} for each in (sound, hurt)
    )
    gone = had - has
    assert len(gone) > 3
    assert surveyed(left, tmp_path, hurt, logged=False).doubtful == ()
    unnamed = hit(hurt, roots(left)["record_id"], bytes(PAGE))
    report = surveyed(left, tmp_path, unnamed, logged=False)
    # The page had the keys above the last one before it, which is that of a session's only message.
    assert report.doubtful == (ses(min(gone) - 1),)
    lost = {each.id: each.lost for each in report.incomplete}
    assert set(lost) == {ses(n) for n in range(min(gone), max(gone) + 1)}
    assert all(len(each) == 1 and each[0].startswith("its newest records") for each in lost.values())


def test_complete_means_that_nothing_is_doubtful() -> None:
    """Each of what may be wrong is enough."""
    assert report_of().complete
    wrong = (
        report_of(doubtful=("a",)),
        report_of(gaps=("a",)),
        report_of(log="a"),
        report_of(lost=("a",)),
    )
    assert not any(report.complete for report in wrong)

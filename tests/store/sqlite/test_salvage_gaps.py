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
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session, user
from tests.store.sqlite.damage import PAGE

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

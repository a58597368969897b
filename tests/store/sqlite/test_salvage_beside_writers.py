"""A damaged store is read while another process goes on committing: nobody waits, and nothing is half old."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreBusy
from holdfast.file_lock import FileLock
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage import source
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.rescue import salvage, survey
from holdfast.testing.store_contract.build import ses
from tests.store.sqlite import damage

CLOCK = SystemClock()
COUNT = 40
"""More sessions than a page of them holds."""

WRITER = """
import anyio, apsw, sys
from pathlib import Path
from holdfast.store.batch import Batch
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session
async def main(path):
    store = await SqliteStore.open(Path(path))
    checkpointer = apsw.Connection(path)
    print("opened", flush=True)
    for line in sys.stdin:
        begin, end, is_moved = map(int, line.split())
        for n in range(begin, end):
            await store.commit(Batch((session(ses(n), title="later " * 50),)))
        if is_moved:
            checkpointer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        print("committed", flush=True)
anyio.run(main, sys.argv[1])
"""
"""Commits sessions, and moves what it may into the file."""


class Other:
    """A process that has the store open, and commits when it is asked to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        assert self._out.readline() == "opened\n"

    def end(self) -> None:
        """Let it close the store."""
        self._in.close()

    def commit(self, turn: int, *, move: bool = True) -> None:
        """Done when it returns; afterwards, what may be moved from the log into the file is there."""
        self._in.write(f"{turn * 1000} {turn * 1000 + COUNT} {int(move)}\n")
        self._in.flush()
        assert self._out.readline() == "committed\n"


def of_turns(*turns: int) -> set[str]:
    """The sessions that were there at first, and those of some turns."""
    return {ses(n) for n in range(1, 7)} | {ses(turn * 1000 + n) for turn in turns for n in range(COUNT)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of six sessions, all of them in the file."""
    anyio.run(damage.few, tmp_path / "store.db")
    return tmp_path / "store.db"


@pytest.fixture
def other(path: Path) -> Iterator[Other]:
    """Another process that has it open; some sessions are in the log alone, a page of records is damaged."""
    command = [sys.executable, "-c", WRITER, str(path)]
    page = damage.leaves(path, "record")[0]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        made = Other(process)
        made.commit(1, move=False)
        hit(path, page, damage.garbage(damage.PAGE, page))
        yield made
        made.end()
    assert process.returncode == 0


def hit(path: Path, page: int, data: bytes) -> None:
    """Other bytes in the place of a page, in the file that others have open."""
    with path.open("r+b") as file:
        file.seek((page - 1) * damage.PAGE)
        file.write(data)


def surveyed(database: Database, failpoint: Callable[[str], None]) -> SalvageReport:
    """A survey, as `doctor` makes it."""
    return survey(database, CLOCK, failpoint=failpoint)


def salvaged(database: Database, failpoint: Callable[[str], None]) -> SalvageReport:
    """A salvage; the new store has just what it tells of."""
    target = database.path.with_name("new.db")
    report = salvage(database, target, CLOCK, failpoint=failpoint)
    assert set(damage.rows(target)) == names(report)
    return report


def names(report: SalvageReport) -> set[str]:
    """The sessions that came."""
    return {*report.whole, *(each.id for each in report.incomplete)}


def is_locked(path: Path) -> bool:
    """Whether nobody may commit now."""
    with contextlib.closing(FileLock(Database(path).lock_path)) as lock:
        try:
            lock.acquire(wait_s=0)
        except StoreBusy:
            return True
        return False


Read = Callable[[Database, Callable[[str], None]], SalvageReport]


@pytest.mark.parametrize("read", [surveyed, salvaged])
def test_commits_go_on_while_a_damaged_store_is_read(path: Path, other: Other, read: Read) -> None:
    """A checkpoint of what the log had writes the file, so all is read again; of later commits there is none.
    So the second reading has the commits of the first one, and none of its own, whole or half.
    """
    locked: list[bool] = []

    def meanwhile(_: str) -> None:
        locked.append(is_locked(path))
        other.commit(1 + len(locked))

    report = read(Database(path), meanwhile)
    assert locked == [False, False]
    assert names(report) == of_turns(1, 2)
    assert (report.lost, report.log) == ((), "")


@pytest.mark.parametrize("read", [surveyed, salvaged])
def test_a_writer_that_never_rests_does_not_keep_a_reading_from_ending(
    path: Path, other: Other, read: Read
) -> None:
    """Where SQLite cannot open the store, each checkpoint moves later commits into the file: the last reading
    has the lock, and all that was committed before it.
    """
    other.commit(2)
    hit(path, 1, bytes(damage.PAGE))
    locked: list[bool] = []

    def meanwhile(_: str) -> None:
        locked.append(is_locked(path))
        if locked[-1]:
            os.utime(path)  # As a checkpoint does of what was committed before.
        else:
            other.commit(2 + len(locked))

    report = read(Database(path), meanwhile)
    assert locked == [False, False, True]
    assert names(report) == of_turns(1, 2, 3, 4)
    assert (report.lost, report.unproved) == ((), False)
    assert not is_locked(path)


def test_a_store_that_nobody_writes_is_read_once(path: Path) -> None:
    """Without its lock, and without a file beside it."""
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    locked: list[bool] = []
    report = survey(Database(path), CLOCK, failpoint=lambda _: locked.append(is_locked(path)))
    assert (locked, names(report), report.complete) == ([False], of_turns(), True)
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before


def test_what_fails_over_a_file_that_was_written_is_read_again(path: Path) -> None:
    """A row of one moment led to a page of another; on a file that stayed as it was it is a fault."""
    tries: list[str] = []

    def work(_: source.Source) -> SalvageReport:
        tries.append("")
        if len(tries) == 1:
            os.utime(path)
        if len(tries) < 3:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return SalvageReport((), (), (), (), 0, 0, 0)

    with pytest.raises(UnicodeDecodeError):
        source.read(Database(path), work)
    assert len(tries) == 2


def test_a_reading_that_was_disturbed_and_may_not_lock_says_so(path: Path) -> None:
    """Such as of a user who may only read the folder."""
    database = Database(path)
    database.lock_path.unlink()
    database.lock_path.mkdir()
    tries: list[str] = []

    def written(step: str) -> None:
        tries.append(step)
        os.utime(path)

    report = survey(database, CLOCK, failpoint=written)
    assert len(tries) == 3
    assert report.gaps == (
        "another process has written the file while it was read: more may be lost than is named",
    )
    assert (report.unproved, report.complete, names(report)) == (True, False, of_turns())

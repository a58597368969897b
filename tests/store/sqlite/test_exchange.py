"""Another file in the place of a store: like any store afterwards, and never under a process that has it."""

import contextlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from holdfast.errors import Refused, StoreBusy, StoreError
from holdfast.store.batch import Batch
from holdfast.store.sqlite.backups import copy
from holdfast.store.sqlite.database import OPENINGS, Database
from holdfast.store.sqlite.exchange import exchange
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import session

EXCHANGE = """
import sys
from pathlib import Path
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.exchange import exchange
exchange(Database(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3]))
"""

SLOW_EXCHANGE = """
import sys
from pathlib import Path
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.exchange import exchange
def stop(step):
    if step == sys.argv[4]:
        print(step, flush=True)
        sys.stdin.readline()
exchange(Database(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3]), failpoint=stop)
"""
"""Waits at a step, where all is locked."""


async def made(path: Path) -> Database:
    """A store with a session."""
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(),)))
    await store.close()
    return Database(path)


def keeps_log(path: Path) -> bool:
    """What the head of the file says, for those who write and those who read."""
    return path.read_bytes()[18:20] == b"\x02\x02"


async def test_a_store_that_was_exchanged_keeps_a_log(tmp_path: Path) -> None:
    """From the moment of the exchange; nothing lies beside it that is not its own."""
    database, draft = await made(tmp_path / "store.db"), tmp_path / "draft"
    copy(database, draft)
    assert not keeps_log(draft)
    (tmp_path / "store.db-journal").write_bytes(b"")  # Of a store that a crash left without a log.

    exchange(database, draft, tmp_path / "aside")

    assert keeps_log(tmp_path / "store.db")
    assert (tmp_path / "aside-journal").exists()
    assert sorted(each.name for each in tmp_path.glob("store.db*")) == [
        "store.db",
        "store.db-lock",
        "store.db-wake",
    ]
    assert not list(tmp_path.glob("draft*"))


async def test_a_store_that_lost_its_log_gets_one_when_it_is_opened(tmp_path: Path) -> None:
    """Such as an earlier Holdfast restored: it stayed so for ever, since the wake file was there."""
    database = await made(tmp_path / "store.db")
    with_rollback = apsw.Connection(str(database.path))
    with_rollback.execute("PRAGMA journal_mode=DELETE")
    with_rollback.close()
    assert not keeps_log(database.path)
    database.prepare(create=False)
    assert keeps_log(database.path)


async def test_a_store_that_was_exchanged_is_refused_while_it_is_open(tmp_path: Path) -> None:
    """By a process that is idle: SQLite's locks of a log tell of it."""
    database, draft = await made(tmp_path / "store.db"), tmp_path / "draft"
    copy(database, draft)
    exchange(database, draft, tmp_path / "aside")
    copy(database, draft)
    store = await SqliteStore.open(database.path)
    try:
        command = [sys.executable, "-c", EXCHANGE, str(database.path), str(draft), str(tmp_path / "second")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        await store.close()
    assert f"{Refused.__name__}: {database.path} is in use by another process" in done.stderr
    assert not (tmp_path / "second").exists()


@pytest.mark.ci
async def test_a_lost_file_that_is_open_is_not_exchanged(tmp_path: Path) -> None:
    """Its process goes on committing into the log: the shared memory tells of it."""
    path, draft = tmp_path / "store.db", tmp_path / "draft"
    store = await SqliteStore.open(path)
    try:
        await store.commit(Batch((session(),)))
        copy(Database(path), draft)
        path.unlink()
        command = [sys.executable, "-c", EXCHANGE, str(path), str(draft), str(tmp_path / "aside")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        await store.close()
    assert f"{Refused.__name__}: {path} is in use by another process" in done.stderr
    assert not list(tmp_path.glob("aside*"))
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("step", ["unlink", "rename"])
async def test_who_opens_a_store_while_it_is_exchanged_gets_the_new_file(tmp_path: Path, step: str) -> None:
    """Opened before the exchange and locked behind it, a file has lost its name: what would be committed into
    it, with the new file's log, would destroy both. Where there is no file at the moment, one is waited for.
    """
    database, draft = await made(tmp_path / "store.db"), tmp_path / "draft"
    copy(database, draft)
    with contextlib.closing(apsw.Connection(str(draft))) as db:
        db.execute("UPDATE session SET title='new'")
    files = [str(database.path), str(draft), str(tmp_path / "aside")]
    command = [sys.executable, "-c", SLOW_EXCHANGE, *files, step]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == f"{step}\n"
        with ThreadPoolExecutor() as threads:
            title = threads.submit(title_of, database)
            wait_for_opened(database.path if step == "unlink" else database.lock_path)
            other.stdin.close()
            assert title.result(timeout=30) == "new"
    assert other.returncode == 0


@pytest.mark.parametrize("times", [1, OPENINGS])
async def test_who_fails_on_a_file_that_was_exchanged_looks_at_the_new_one(
    tmp_path: Path, times: int
) -> None:
    """The log of the new file is none of the old one's: what was met there says nothing. It has a bound."""

    class Exchanged(Database):
        left = times

        def _open(self, *, readonly: bool) -> apsw.Connection:
            if self.left:
                self.left -= 1
                copy(Database(self.path), self.path.with_name("new"))
                self.path.with_name("new").replace(self.path)
                raise StoreError("the log is of another file")
            return super()._open(readonly=readonly)

    database = Exchanged((await made(tmp_path / "store.db")).path)
    if times < OPENINGS:
        assert title_of(database) == title_of(Database(database.path))
    else:
        with pytest.raises(StoreBusy, match="is exchanged again and again by another process; try again"):
            title_of(database)


def title_of(database: Database) -> object:
    """What a connection that is opened now reads."""
    with contextlib.closing(database.connect()) as db:
        return db.execute("SELECT title FROM session").get


def wait_for_opened(path: Path) -> None:
    """Until a thread of this process has that file open."""
    until = time.monotonic() + 30
    while not any(os.path.realpath(each) == str(path) for each in Path("/proc/self/fd").iterdir()):
        assert time.monotonic() < until
        time.sleep(0.01)

"""The source is only read: not a byte, a file or a time of change differs afterwards."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.errors import InvalidInput, NotFound
from holdfast.store.base import Store
from holdfast.store.exchange.opencode.database import ReadOnly
from tests.store.exchange.opencode.world import CHILD, PARENT, Db, brought, fingerprint, generation_b, held

WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("UPDATE session SET title='from the log' WHERE id=?", (sys.argv[2],))
print("ready", flush=True)
for line in sys.stdin:
    db.execute("UPDATE session SET title=? WHERE id=?", (line.strip(), sys.argv[2]))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print("done", flush=True)
"""


@contextmanager
def writer(path: Path) -> "Iterator[subprocess.Popen[str]]":
    """Another process with the database open, its last change only in the write-ahead log."""
    command = [sys.executable, "-c", WRITER, str(path), PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a session and its exchange."""
    db = Db(tmp_path / "data" / "opencode.db")
    db.session()
    db.exchange()
    return db.path


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0 and then rubbish" * 99])
async def test_what_is_no_database_is_refused_in_one_line(
    store: Store, tmp_path: Path, content: bytes
) -> None:
    """Empty, foreign or broken files end in an error that names them."""
    path = tmp_path / "opencode.db"
    path.write_bytes(content)

    with pytest.raises(InvalidInput, match=r"opencode\.db"):
        await brought(store, path)


async def test_a_database_of_another_program_is_refused(store: Store, tmp_path: Path) -> None:
    """Without a session table it is not OpenCode's; a view of that name does not count."""
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE VIEW session AS "
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
        )
        db.commit()

    with pytest.raises(InvalidInput, match="is not an OpenCode database"):
        await brought(store, path)
    with pytest.raises(NotFound, match="does not exist"):
        await brought(store, tmp_path / "absent")


async def test_a_closed_database_is_read_and_left_as_it_is(store: Store, data: Path) -> None:
    """No log, no index: nothing is created beside it."""
    before = fingerprint(data.parent)

    await brought(store, data)

    assert (await held(store))["session"]["title"] == "Mock"
    assert fingerprint(data.parent) == before
    assert list(before) == [str(data.parent), str(data)]


async def test_the_log_of_a_living_opencode_is_read(store: Store, data: Path) -> None:
    """A change that stands only in the write-ahead log of an open database comes over; nothing is touched."""
    with writer(data):
        before = fingerprint(data.parent)
        await brought(store, data.parent)
        assert fingerprint(data.parent) == before

    assert (await held(store))["session"]["title"] == "from the log"
    assert str(data) + "-wal" in before


async def test_the_log_of_a_killed_opencode_is_read(store: Store, data: Path) -> None:
    """The index that a killed process left is stale; the log is read all the same, and nothing is mended."""
    with writer(data) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = fingerprint(data.parent)

    await brought(store, data.parent)

    assert (await held(store))["session"]["title"] == "from the log"
    assert fingerprint(data.parent) == before


async def test_a_log_without_its_index_is_read_from_a_copy(store: Store, data: Path) -> None:
    """A folder that was copied by hand: SQLite must write to put it together, so it does so elsewhere."""
    with writer(data) as process:
        process.kill()
        process.wait()
    Path(f"{data}-shm").unlink()
    before = fingerprint(data.parent)

    await brought(store, data.parent)

    assert (await held(store))["session"]["title"] == "from the log"
    assert fingerprint(data.parent) == before


async def test_a_folder_that_nobody_may_write_to_is_read(store: Store, data: Path) -> None:
    """Read permission is enough, with and without a log."""
    with writer(data):
        files = [data, Path(f"{data}-wal"), Path(f"{data}-shm")]
        for file in files:
            file.chmod(0o444)
        data.parent.chmod(0o555)
        try:
            await brought(store, data.parent)
        finally:
            data.parent.chmod(0o755)

    assert (await held(store))["session"]["title"] == "from the log"


def test_each_reading_sees_what_was_written_before_it(data: Path) -> None:
    """Between two readings the living may write and checkpoint; we hold nothing up and miss nothing."""
    with writer(data) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reader = ReadOnly(data)
        titles = []
        for title in ("one", "two", "three"):
            process.stdin.write(f"{title}\n")
            process.stdin.flush()
            process.stdout.readline()
            with reader:
                titles += [row[0] for row in reader.rows("SELECT title FROM session")]
        reader.close()

    assert titles == ["one", "two", "three"]


def test_a_database_that_is_taken_up_again_is_noticed(data: Path) -> None:
    """What was read as immutable is opened anew when OpenCode has started meanwhile."""
    reader = ReadOnly(data)
    with reader:
        assert reader.rows("SELECT title FROM session") == [("Mock",)]
    with writer(data):
        with reader:
            assert reader.rows("SELECT title FROM session") == [("from the log",)]
        reader.close()


def test_a_write_in_the_middle_of_a_reading_is_told(data: Path) -> None:
    """Half old and half new is worse than nothing: the reading fails and says what to do."""
    reader = ReadOnly(data)

    def disturbed() -> None:
        with reader, closing(sqlite3.connect(data)) as db:
            db.execute("UPDATE session SET title='changed'")
            db.commit()

    with pytest.raises(InvalidInput, match="was written to while it was read; import again"):
        disturbed()
    reader.close()


async def test_trees_are_left_as_they_are(store: Store, tmp_path: Path) -> None:
    """The JSON trees too."""
    root = generation_b(tmp_path / "storage")
    before = fingerprint(root)

    await brought(store, root)

    assert fingerprint(root) == before


async def test_an_id_that_is_a_path_leads_nowhere(store: Store, data: Path) -> None:
    """A row may call its session anything; no file outside of the source is opened for it."""
    outside = data.parent.parent / "outside.json"
    outside.write_text('[{"file":"secret","additions":1,"deletions":0}]', encoding="utf-8")
    evil = "ses_/../../../outside"
    db = Db(data.parent / "opencode-dev.db")
    db.session(evil)
    generation_b(data.parent / "storage")

    report = await brought(store, data.parent)

    assert [skip.why for skip in report.skipped if "outside" in skip.what] != []
    assert evil not in report.sessions
    assert CHILD not in report.sessions

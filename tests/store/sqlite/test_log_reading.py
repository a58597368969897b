"""How a log is looked at when a store is opened: once, no more of it than need be, and without a trace."""

import shutil
import struct
from contextlib import closing
from pathlib import Path

import anyio
import apsw
import pytest

from holdfast.errors import StoreDamaged
from holdfast.store.batch import Batch
from holdfast.store.sqlite import leftover_log
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage import log_file
from holdfast.store.sqlite.salvage.log import goes_on
from holdfast.store.sqlite.salvage.log_file import log_bytes, log_trouble
from holdfast.store.sqlite.salvage.raw_file import RawFile, opened_raw
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session, user
from tests.store.sqlite import damage

HEAD, FRAME = 32, 24 + damage.PAGE


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose process was killed: all is in the log."""
    path = tmp_path_factory.mktemp("log") / "left.db"

    async def leave() -> None:
        opened = path.with_name("opened.db")
        store = await SqliteStore.open(opened)
        try:
            for n in range(1, 6):
                await store.commit(Batch((session(ses(n)), user(4096 + n, session=ses(n)))))
            for suffix in ("", "-wal", "-wake"):
                shutil.copyfile(f"{opened}{suffix}", f"{path}{suffix}")
        finally:
            await store.close()

    anyio.run(leave)
    return path


@pytest.fixture
def database(left: Path, tmp_path: Path) -> Database:
    """A copy of it."""
    for suffix in ("", "-wal", "-wake"):
        shutil.copyfile(f"{left}{suffix}", tmp_path / f"store.db{suffix}")
    return Database(tmp_path / "store.db")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much was read of a log, each time."""
    sizes: list[int] = []
    before = RawFile.__getitem__

    def counted(log: RawFile, part: slice, /) -> bytes:
        found = before(log, part)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(RawFile, "__getitem__", counted)
    return sizes


def add_rest(database: Database, count: int) -> None:
    """What a killed process leaves of a long transaction: frames with the log's salts, and no commit."""
    with database.log_path.open("r+b") as log:
        salts = log.read(HEAD)[16:24]
        log.seek(0, 2)
        for n in range(count):
            log.write(struct.pack(">2I", n + 40, 0) + salts + bytes(8) + bytes([0x0D]) * damage.PAGE)


def test_a_rest_that_was_never_committed_is_not_read(database: Database, read: list[int]) -> None:
    """Only the heads of its frames are, by whoever opens the store and by whoever salvages it."""
    whole = database.log_path.read_bytes()
    add_rest(database, 200)
    database.connect(readonly=True).close()
    assert read
    assert sum(read) < 200 * 24 + 3 * FRAME
    read.clear()
    assert log_bytes(database.log_path) == (whole, 0)
    assert log_trouble(database.log_path) == ""
    assert sum(read) < 2 * (len(whole) + 300 * 24)


def test_a_long_log_is_held_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it must be read again, the reading before is given up first."""
    log = bytearray(database.log_path.read_bytes())
    log[HEAD + 24 + 99] ^= 1
    database.log_path.write_bytes(log)
    held: list[int] = []

    class Held(bytes):
        def __del__(self) -> None:
            held.remove(id(self))

    before = log_file._reading

    def reading(path: Path) -> tuple[bytes, int]:
        assert not held
        found = Held(before(path)[0])
        held.append(id(found))
        return found, 0

    monkeypatch.setattr(log_file, "_reading", reading)
    assert log_trouble(database.log_path)


def test_it_is_looked_at_once_for_all_connections(database: Database, read: list[int]) -> None:
    """A store that is opened has five of them."""
    with closing(database.connect()):
        assert read
        read.clear()
        database.connect(readonly=True).close()
    assert not read


def test_where_sqlite_does_not_say_how_far_it_has_read_it_is_read_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is for users who may only read: all of the log, but not for each connection."""
    asked: list[Path] = []
    monkeypatch.setattr(leftover_log, "_is_sound", lambda _, path: asked.append(path))
    for _ in range(2):
        database.connect(readonly=True).close()
    assert len(asked) == 1


def test_the_last_connection_moves_the_log_into_the_file(database: Database) -> None:
    """As ever: a connection that was looked after does not leave the log behind."""
    database.connect().close()
    assert not database.log_path.exists()
    with closing(database.connect()) as db:
        assert db.execute("SELECT count(*) FROM session").get == 5


def test_a_log_that_another_process_removes_meanwhile_holds_nothing(
    database: Database, tmp_path: Path
) -> None:
    """The last that closes the store moves all of it into the file."""
    with closing(apsw.Connection(str(database.path))) as db:
        database.log_path = tmp_path / "gone"
        leftover_log.check(database, db)
        assert db.execute("SELECT count(*) FROM session").get == 5


def test_what_another_process_has_just_written_goes_on(database: Database) -> None:
    """Wherever SQLite had come to when it was asked; a bit that is changed behind that does not."""
    log = database.log_path.read_bytes()
    count = len(log) // FRAME
    for read in range(-1, count + 1, 2):
        assert goes_on(log, read), read
    for broken in range(0, count, 4):
        changed = bytearray(log)
        changed[HEAD + FRAME * broken + 24 + 99] ^= 1
        assert [goes_on(bytes(changed), read) for read in (0, broken, broken + 1)] == [False, False, True]


def test_damage_where_sqlite_has_stopped_is_seen(database: Database) -> None:
    """In the first frame behind what it has read: those behind it run on from its sum, which is whole."""
    log = bytearray(database.log_path.read_bytes())
    ends = [i for i, at in enumerate(range(HEAD, len(log), FRAME)) if any(log[at + 4 : at + 8])]
    log[HEAD + FRAME * (ends[1] + 1) + 24 + 99] ^= 1
    database.log_path.write_bytes(log)
    with pytest.raises(StoreDamaged, match=f"at frame {ends[1] + 2} of"):
        database.connect()


def test_a_log_that_is_cut_off_while_it_is_read_has_zeros_there(tmp_path: Path) -> None:
    """Another process may do so at any time."""
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100)
    with opened_raw(path) as log:
        path.write_bytes(b"y" * 10)
        assert log[5:20] == b"y" * 5 + bytes(10)


@pytest.mark.parametrize("state", ["gone", "empty"])
@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("commits", "its log holds what was committed last"),
        ("beginning lost", "its log holds what was committed last"),
        ("garbage", "its log cannot be read"),
        ("head", ""),
        ("part of a head", ""),
        ("no commit", ""),
    ],
)
def test_a_log_without_its_file_is_removed_only_if_nothing_was_committed_in_it(
    database: Database, what: str, says: str, state: str
) -> None:
    """SQLite removes it in any case; so the store is refused, or made anew."""
    log = database.log_path.read_bytes()
    uncommitted = bytearray(log[: HEAD + 3 * FRAME])
    for at in range(HEAD, len(uncommitted), FRAME):
        uncommitted[at + 4 : at + 8] = bytes(4)
    log = {
        "commits": log,
        "beginning lost": bytes(4096) + log[4096:],
        "garbage": damage.garbage(3 * FRAME, 1),
        "head": log[:HEAD],
        "part of a head": log[: HEAD - 5],
        "no commit": bytes(uncommitted),
    }[what]
    database.log_path.write_bytes(log)
    database.wake_path.unlink()
    database.path.write_bytes(b"")
    if state == "gone":
        database.path.unlink()
    if not says:
        database.prepare(create=True)
        with closing(database.connect()) as db:
            assert db.execute("SELECT count(*) FROM session").get == 0
        return
    with pytest.raises(StoreDamaged, match=f"it is {state}, and {says}"):
        database.prepare(create=True)
    assert database.log_path.read_bytes() == log

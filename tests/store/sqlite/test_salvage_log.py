"""The log of a store that is damaged in the middle: what stands behind the damage comes back, and it is told.

What a crash, a new beginning of the log or a rollback leaves in it is no damage.
"""

import contextlib
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.store.batch import Batch
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage import frames, log_file
from holdfast.store.sqlite.salvage.frames import _checksum
from holdfast.store.sqlite.salvage.log import Log, read_log
from holdfast.store.sqlite.salvage.log_file import log_trouble
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.rescue import salvage
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session, user
from tests.store.sqlite import damage

FRAME = 24 + damage.PAGE
HEAD = 32
Change = Callable[[bytearray], object]
Rows = dict[str, tuple[object, list[tuple[object, ...]]]]


async def _logged(path: Path) -> None:
    """A store of which everything is in the log: five sessions with messages, two commits each."""
    opened = path.with_name("opened.db")
    store = await SqliteStore.open(opened)
    try:
        for n in range(1, 6):
            await store.commit(Batch((session(ses(n), title=f"Session {n} " * 60),)))
            await store.commit(Batch((user(4096 + n, session=ses(n)), user(8192 + n, session=ses(n)))))
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{opened}{suffix}", f"{path}{suffix}")
    finally:
        await store.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was not closed."""
    path = tmp_path_factory.mktemp("log") / "store.db"
    anyio.run(_logged, path)
    return path


def hurt(store: Path, change: Change) -> Database:
    """The store with a change in its log."""
    database = Database(store.with_name("hurt.db"))
    log = bytearray(Path(f"{store}-wal").read_bytes())
    change(log)
    shutil.copyfile(store, database.path)
    database.log_path.write_bytes(log)
    return database


def salvaged(database: Database) -> tuple[SalvageReport, Rows]:
    """What comes back; the damaged files are as they were."""
    new = database.path.with_name("new.db")
    new.unlink(missing_ok=True)
    before = (database.path.read_bytes(), database.log_path.read_bytes())
    report = salvage(database, new, SystemClock())
    assert (database.path.read_bytes(), database.log_path.read_bytes()) == before
    return report, damage.rows(new)


def flip(at: int) -> Change:
    """One bit changed."""

    def change(log: bytearray) -> None:
        log[at] ^= 1

    return change


def sound_log(store: Path) -> Log:
    """The log as it was written."""
    log = read_log(Path(f"{store}-wal").read_bytes())
    assert log is not None
    assert log.damaged == ()
    return log


@pytest.mark.parametrize("part", ["number", "salt", "sum", "page", "all"])
@pytest.mark.parametrize("frame", [0, 1, 9])
def test_what_stands_behind_a_damaged_frame_comes_back(store: Path, frame: int, part: str) -> None:
    """Any part of a frame: its page was written again later, so nothing is lost; it is told where."""
    sound = _sound(store)
    at = HEAD + FRAME * frame

    def change(log: bytearray) -> None:
        if part == "all":
            log[at : at + FRAME] = damage.garbage(FRAME, frame)
        else:
            log[at + {"number": 3, "salt": 9, "sum": 17, "page": 124}[part]] ^= 1

    database = hurt(store, change)
    report, came = salvaged(database)
    assert came == sound
    assert not report.complete
    assert report.log.startswith(f"the log is damaged at frame {frame + 1} ")
    assert report.log.endswith(f"of {sound_log(store).frames}")
    assert log_trouble(database.log_path) == report.log


@pytest.mark.parametrize("at", [1, 5, 10, 17, 25])
def test_a_log_whose_head_is_damaged_is_read_all_the_same(store: Path, at: int) -> None:
    """Its magic number, its page size, its salts, its sum: the frames hold without it."""
    database = hurt(store, flip(at))
    report, came = salvaged(database)
    assert came == _sound(store)
    assert report.log.startswith("the head of the log is damaged")


@pytest.mark.parametrize("filled", [b"\0", b"\xff", b""])
@pytest.mark.parametrize("length", [4096, HEAD + FRAME, HEAD + 5 * FRAME + 99])
def test_a_log_whose_beginning_is_damaged_is_read_all_the_same(
    store: Path, length: int, filled: bytes
) -> None:
    """However much of it: the frames that are whole say of which log they are."""

    def change(log: bytearray) -> None:
        log[:length] = filled * length or damage.garbage(length, 3)

    database = hurt(store, change)
    report, came = salvaged(database)
    assert log_trouble(database.log_path).startswith("the head of the log is damaged")
    assert report.log == log_trouble(database.log_path)
    assert came.keys() >= {ses(4), ses(5)}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("size", [512, 4096, 8192])
def test_the_beginning_may_be_damaged_in_logs_of_every_kind(order: str, size: int) -> None:
    """The sums are made in the order of the machine; the size of the pages is known as far as it is said."""
    log = made_log(order, size)
    whole = read_log(log)
    assert whole is not None
    head = log[8:12] if size != 4096 else bytes(4)
    left = read_log(bytes(8) + head + bytes(20 + 24 + size) + log[HEAD + 24 + size :])
    assert left is not None
    assert (left.page_size, left.frames) == (size, whole.frames)
    assert left.damaged[0] == 0


def made_log(order: str, size: int) -> bytes:
    """A log of five transactions, a frame each."""
    lead = struct.pack(">6I", 0x377F0682 + (order == ">"), 3007000, size, 0, 7, 8)
    running = _checksum(lead, (0, 0), order)
    log = lead + struct.pack(">2I", *running)
    for n in range(1, 6):
        page = damage.garbage(size, n)
        running = _checksum(page, _checksum(struct.pack(">2I", n, 5), running, order), order)
        log += struct.pack(">6I", n, 5, 7, 8, *running) + page
    return log


def test_a_long_beginning_of_one_byte_is_passed_over() -> None:
    """An erased disk reads so, and each such frame has the salts of the one before."""
    log = made_log("<", 512)
    left = read_log(bytes(8) + log[8:12] + b"\xff" * (20 + 300 * (24 + 512)) + log[HEAD:])
    assert left is not None
    assert left.frames == 305


def test_finding_the_salts_takes_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log that is nothing at all, though its frames look alike: few of them are summed."""
    sums = 0
    summed = frames.frame_sum

    def counted(*args: Any) -> frames.Sum:
        nonlocal sums
        sums += 1
        return summed(*args)

    monkeypatch.setattr(frames, "frame_sum", counted)
    same = b"".join(struct.pack(">6I", n, 0, 1 + n // 4, 1, 2, 3) + bytes(damage.PAGE) for n in range(1, 900))
    assert read_log(bytes(HEAD) + same) is None
    assert sums < 300


def test_rows_of_a_damaged_frame_are_found_by_their_shape(store: Path) -> None:
    """The only state of a page of records has one bit changed: its rows come back all the same."""
    records = damage.roots(_closed(store))["record"]
    at = sound_log(store).offsets[records] + 3000
    report, came = salvaged(hurt(_renewed(store), flip(at)))
    assert {id: len(rows) for id, (_, rows) in came.items()} == {ses(n): 2 for n in range(1, 6)}
    assert report.log


@pytest.mark.parametrize("kind", ["half", "changed", "missing"])
def test_a_torn_last_frame_is_no_damage(store: Path, kind: str) -> None:
    """What every crash may leave: half of the last frame, or all of it with bytes that were not written."""

    def change(log: bytearray) -> None:
        if kind == "changed":
            log[-100] ^= 1
        else:
            del log[-FRAME if kind == "missing" else -100 :]

    database = hurt(store, change)
    assert log_trouble(database.log_path) == ""
    assert salvaged(database)[0].complete


@pytest.mark.parametrize("left", ["a former life", "a rollback"])
def test_frames_that_are_left_behind_the_living_ones_are_no_damage(tmp_path: Path, left: str) -> None:
    """A log that was begun again has old frames behind it, and so has one after a rollback of much."""
    path = tmp_path / "some.db"
    with contextlib.closing(apsw.Connection(str(path))) as db:
        for line in ("journal_mode=WAL", "wal_autocheckpoint=0", "cache_size=5"):
            db.execute(f"PRAGMA {line}").fetchall()
        db.execute("CREATE TABLE t(x)")
        db.execute("BEGIN")
        db.executemany("INSERT INTO t VALUES (?)", [("x" * 3000,)] * 40)
        db.execute("COMMIT" if left == "a former life" else "ROLLBACK")
        if left == "a former life":
            db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        db.execute("INSERT INTO t VALUES (1)")
        data = Path(f"{path}-wal").read_bytes()
        log = read_log(data)
    assert log is not None
    assert log.frames < (len(data) - HEAD) // FRAME - 10
    assert (log.damaged, log.trouble) == ((), "")


def _renewed(store: Path) -> Path:
    """A copy of the store in whose log a lease was written last: what stands before it was acknowledged."""
    copy, path = store.with_name("live.db"), store.with_name("renewed.db")
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{store}{suffix}", f"{copy}{suffix}")
    with contextlib.closing(apsw.Connection(str(copy))) as db:
        db.execute("INSERT INTO owner VALUES ('o','{}',0,0,0)")
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{copy}{suffix}", f"{path}{suffix}")
    return path


def _closed(store: Path) -> Path:
    """A copy of the store with its log in the file."""
    copy = store.with_name("closed.db")
    if not copy.exists():
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{store}{suffix}", f"{copy}{suffix}")
        apsw.Connection(str(copy)).close()
        with contextlib.closing(apsw.Connection(str(copy))) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return copy


def _sound(store: Path) -> Rows:
    return damage.rows(_closed(store))


def test_a_log_that_changes_as_it_is_read_is_no_damage(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading shows damage elsewhere, where another process was writing: the last shows none."""
    sound = Path(f"{store}-wal").read_bytes()
    readings = [sound, sound]
    for frame in (3, 2):
        torn = bytearray(sound)
        flip(HEAD + FRAME * frame + 99)(torn)
        readings.append(bytes(torn))
    monkeypatch.setattr(log_file, "_reading", lambda _: (readings.pop(), 0))
    assert log_trouble(Database(store).log_path) == ""

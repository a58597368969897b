"""A log that was left over is looked at when the store is opened: no commit behind damage is dropped, and
what a crash or a power cut leaves at its end opens as ever.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreDamaged
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch
from holdfast.store.sqlite.backups import copy
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.log import read_log
from holdfast.store.sqlite.salvage.log_file import log_trouble
from holdfast.store.sqlite.salvage.rescue import salvage
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import S1, ses, session, text, user
from tests.store.sqlite import damage

WRITER = Path(__file__).parents[2] / "crash/writer.py"
HEAD, FRAME = 32, 24 + damage.PAGE
COUNT = 6
Change = Callable[[bytearray], object]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose process was killed: all is in the log, a commit a session, the last one of many pages."""
    path = tmp_path_factory.mktemp("log") / "left.db"
    anyio.run(_leave, path)
    return path


async def _leave(path: Path) -> None:
    opened = path.with_name("opened.db")
    store = await SqliteStore.open(opened)
    try:
        for n in range(1, COUNT):
            await store.commit(Batch((session(ses(n)), user(4096 + n, session=ses(n)))))
        long = text(9000, 8000, "x" * 9 * damage.PAGE, session=ses(COUNT), mark=Mark.OPEN)
        await store.commit(Batch((session(ses(COUNT)), user(8000, session=ses(COUNT)), long)))
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(f"{opened}{suffix}", f"{path}{suffix}")
    finally:
        await store.close()


def placed(left: Path, tmp_path: Path, change: Change = lambda log: None) -> Database:
    """The store with a change in its log."""
    path = tmp_path / "store.db"
    log = bytearray(Path(f"{left}-wal").read_bytes())
    change(log)
    for suffix in ("", "-wake"):
        shutil.copyfile(f"{left}{suffix}", f"{path}{suffix}")
    Path(f"{path}-wal").write_bytes(log)
    return Database(path)


def ends(left: Path) -> list[int]:
    """The frames, from 1, with which transactions end."""
    log = Path(f"{left}-wal").read_bytes()
    frames = range(HEAD, len(log), FRAME)
    return [i for i, at in enumerate(frames, 1) if any(log[at + 4 : at + 8])]


def flipped(frame: int, at: int = 24 + 99) -> Change:
    """One bit of a frame, from 1, changed."""

    def change(log: bytearray) -> None:
        log[HEAD + FRAME * (frame - 1) + at] ^= 1

    return change


def lost(frame: int, left_there: bytes = bytes(FRAME)) -> Change:
    """A frame that was never written: what was there before."""

    def change(log: bytearray) -> None:
        begin = HEAD + FRAME * (frame - 1)
        log[begin : begin + FRAME] = left_there.ljust(FRAME, b"\0")

    return change


async def held(database: Database) -> set[str]:
    """The sessions that an open store has."""
    store = await SqliteStore.open(database.path)
    try:
        return {f"{n}" for n in range(1, COUNT + 1) if await store.session(ses(n)) is not None}
    finally:
        await store.close()


def files(database: Database) -> tuple[bytes, bytes]:
    """What must not change."""
    return database.path.read_bytes(), database.log_path.read_bytes()


ALL = {f"{n}" for n in range(1, COUNT + 1)}


def damage_at(left: Path, what: str) -> Change:
    """Damage with acknowledged commits behind it."""
    end = ends(left)
    match what:
        case "head":
            return lambda log: log.__setitem__(25, log[25] ^ 1)
        case "first page":
            return flipped(1)
        case "salt":
            return flipped(end[1], at=9)
        case "sum":
            return flipped(end[2], at=17)
        case "garbage":
            return lost(end[-2], damage.garbage(FRAME, 5))
        case _:
            return flipped(end[-2])


@pytest.mark.parametrize("what", ["head", "first page", "salt", "sum", "garbage", "page"])
async def test_a_store_with_commits_behind_damage_is_not_opened(
    left: Path, tmp_path: Path, what: str
) -> None:
    """It is refused in doctor's words, neither file is touched, and a salvage brings every session."""
    database = placed(left, tmp_path, damage_at(left, what))
    before = files(database)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"log is damaged.*holdfast doctor|head of the log is damaged"):
            await SqliteStore.open(database.path)
        assert files(database) == before
    report = salvage(database, tmp_path / "new.db", SystemClock())
    assert {*report.whole, *(each.id for each in report.incomplete)} == {ses(n) for n in range(1, COUNT + 1)}


def test_no_connection_is_made_to_it(left: Path, tmp_path: Path) -> None:
    """Not to read, not for a backup, not without the sign of a store, nor where only reading is allowed."""
    database = placed(left, tmp_path, flipped(3))
    before = files(database)
    with pytest.raises(StoreDamaged):
        database.connect(readonly=True)
    with pytest.raises(StoreDamaged):
        copy(database, tmp_path / "copy.db")
    database.wake_path.unlink()
    with pytest.raises(StoreDamaged):
        database.prepare(create=True)
    database.readonly = True
    with pytest.raises(StoreDamaged):
        database.connect(readonly=True)
    assert files(database) == before


@pytest.mark.ci
@pytest.mark.parametrize("deaths", [1, 2])
async def test_what_a_killed_process_wrote_and_never_published_is_no_damage(
    tmp_path: Path, deaths: int
) -> None:
    """A whole transaction of many frames, of which another process, that lives, knows nothing: it writes its
    own over the beginning, smaller and smaller ones. What is left has a commit, and nobody was told of it.
    """
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    rest = b""
    try:
        await store.commit(Batch(tuple(session(ses(n)) for n in range(1, 30))))
        for death in range(deaths):
            died = await written_after(tmp_path / f"died{death}", path, pages=40 - 20 * death)
            rest = died + rest[len(died) :]
        await store.commit(Batch((session(ses(30)),)))
        log = Path(f"{path}-wal").read_bytes()
        (tmp_path / "left").mkdir()
        left = Database(tmp_path / "left" / "store.db")
        for suffix in ("", "-wake"):
            shutil.copyfile(f"{path}{suffix}", f"{left.path}{suffix}")
    finally:
        await store.close()
    assert len(rest) > len(log) + 2 * FRAME
    left.log_path.write_bytes(log + rest[len(log) :])

    assert log_trouble(left.log_path) == ""
    report = salvage(left, tmp_path / "new.db", SystemClock())
    assert ({*report.whole}, report.log) == ({ses(n) for n in range(1, 31)}, "")
    for n in range(31, 40):  # Each new end stands somewhere else in what is left.
        store = await SqliteStore.open(left.path)
        try:
            await store.commit(Batch((session(ses(n)),)))
            shutil.copyfile(left.log_path, tmp_path / "kept")
            shutil.copyfile(left.path, tmp_path / "file")
        finally:
            await store.close()
        shutil.copyfile(tmp_path / "kept", left.log_path)
        shutil.copyfile(tmp_path / "file", left.path)
    store = await SqliteStore.open(left.path)
    try:
        assert all([await store.session(ses(n)) is not None for n in range(1, 40)])
    finally:
        await store.close()


async def written_after(folder: Path, path: Path, *, pages: int) -> bytes:
    """The log of a copy of a store that has written so many pages more."""
    folder.mkdir()
    copied = folder / "store.db"
    for suffix in ("", "-wal", "-wake"):
        shutil.copyfile(f"{path}{suffix}", f"{copied}{suffix}")
    store = await SqliteStore.open(copied)
    try:
        texts = (text(5000 + n, 4999, "x" * 3000, session=ses(1)) for n in range(pages))
        await store.commit(Batch((user(4999, session=ses(1)), *texts)))
        return Path(f"{copied}-wal").read_bytes()
    finally:
        await store.close()


@pytest.mark.parametrize("what", ["half", "head", "page", "gone", "sum", "all garbage"])
async def test_a_torn_end_opens(left: Path, tmp_path: Path, what: str) -> None:
    """Whatever a crash leaves of the last frame, or of the last transaction."""
    end = ends(left)

    def change(log: bytearray) -> None:
        match what:
            case "half":
                del log[-FRAME // 2 :]
            case "head":
                del log[-FRAME + 9 :]
            case "gone":
                del log[-FRAME:]
            case "page":
                flipped(end[-1])(log)
            case "sum":
                flipped(end[-1], at=17)(log)
            case _:
                for frame in range(end[-2] + 1, end[-1] + 1):
                    lost(frame, damage.garbage(FRAME, frame))(log)

    assert await held(placed(left, tmp_path, change)) == ALL - {str(COUNT)}


@pytest.mark.parametrize("what", ["page", "nothing", "a former life"])
async def test_a_power_cut_that_left_a_hole_in_the_last_transaction_opens(
    left: Path, tmp_path: Path, what: str
) -> None:
    """The end was written, and not the middle. It is dropped for good: no later look takes it for damage."""
    end = ends(left)
    hole = end[-2] + 3
    salt = int.from_bytes(Path(f"{left}-wal").read_bytes()[16:20])
    old = bytes(7) + b"\1" + (salt - 1).to_bytes(4) + b"salt"
    change = {"page": flipped(hole), "nothing": lost(hole), "a former life": lost(hole, old)}[what]
    database = placed(left, tmp_path, change)
    assert log_trouble(database.log_path) == ""
    store = await SqliteStore.open(database.path)
    try:
        assert await store.session(ses(COUNT)) is None
        await store.commit(Batch((session(ses(9)),)))
        assert log_trouble(database.log_path) == ""
    finally:
        await store.close()


async def test_renewed_leases_are_no_reason_to_refuse(tmp_path: Path) -> None:
    """They are not synced by themselves, so a power cut may leave a hole before the last of them."""
    opened = tmp_path / "opened.db"
    store = await SqliteStore.open(opened)
    try:
        await store.commit(Batch((session(),)))
        synced = len(Path(f"{opened}-wal").read_bytes()) // FRAME
        for n in range(3):
            await store.write(lambda c, n=n: c.rows("INSERT INTO owner VALUES (?,'{}',0,0,0)", f"o{n}"))  # type: ignore[misc]
        log = Path(f"{opened}-wal").read_bytes()
    finally:
        await store.close()
    assert len(log) // FRAME - synced == 3
    for frame, damaged in ((synced + 1, ()), (synced, (synced,))):
        data = bytearray(log)
        flipped(frame)(data)
        seen = read_log(bytes(data))
        assert seen is not None
        assert seen.damaged == damaged


async def test_a_log_that_was_begun_again_opens(tmp_path: Path) -> None:
    """Behind the living frames stand those of another generation, one of them damaged: the file has them."""
    opened, path = tmp_path / "opened.db", tmp_path / "store.db"
    store = await SqliteStore.open(opened)
    try:
        for n in range(1, COUNT):
            await store.commit(Batch((session(ses(n)), user(4096 + n, session=ses(n)))))
        with closing(Database(opened).connect()) as db:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        await store.commit(Batch((session(ses(COUNT)),)))
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(f"{opened}{suffix}", f"{path}{suffix}")
    finally:
        await store.close()
    log = bytearray(Path(f"{path}-wal").read_bytes())
    flipped(len(log) // FRAME - 3)(log)
    Path(f"{path}-wal").write_bytes(log)
    assert await held(Database(path)) == ALL


@pytest.mark.ci
async def test_a_store_in_use_opens_while_it_is_written(tmp_path: Path) -> None:
    """A log that grows, and is begun again, is never taken for a damaged one."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(),)))
    await store.close()
    command = [sys.executable, str(WRITER), f"sqlite://{path}", S1, "1", "1000000"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(150):
            database = Database(path)
            database.prepare(create=False)
            database.connect().close()
    finally:
        writer.kill()
        writer.communicate(timeout=30)
    database = Database(path)
    database.prepare(create=False)

"""Automatic backups: one a day, three kept, whole and sound or not there, made by one process."""

import errno
import os
import resource
import time
from pathlib import Path

import pytest

from holdfast.file_lock import FileLock
from holdfast.store.batch import Batch
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.store.record import Resync
from holdfast.store.sqlite.backups import DAY_S, Backups
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.store_contract.build import S1, session, user
from tests.store.sqlite.damage import garbage

NOW_S = 1_800_000_000.0


class Calendar:
    """The time, as a test sets it."""

    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


async def begun(path: Path, calendar: Calendar) -> Backups:
    """A store with a session, a day old."""
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), user(1))))
    await store.close()
    backups = Backups(Database(path), calendar)
    assert not backups.is_due()
    os.utime(backups.folder / "last", (NOW_S - DAY_S - 1, NOW_S - DAY_S - 1))
    return backups


async def test_one_a_day_is_made_and_three_are_kept(tmp_path: Path) -> None:
    """Each opens as a store of its own, with another incarnation: cursors of the store end in a resync."""
    calendar = Calendar()
    backups = await begun(tmp_path / "store.db", calendar)
    names = []
    for _ in range(5):
        assert backups.is_due()
        backups.make()
        names.append(time.strftime("%Y%m%d-%H%M%S.db", time.gmtime(calendar.now_s)))
        assert not backups.is_due()
        backups.make()
        calendar.now_s += DAY_S + 1

    assert [path.name for path in backups.listed()] == names[:1:-1]
    assert backups.trouble() is None
    store, copy = await SqliteStore.open(tmp_path / "store.db"), await SqliteStore.open(backups.listed()[0])
    assert isinstance(await copy.changes(await store.head()), Resync)
    assert len((await copy.messages(MessageQuery(S1))).messages) == 1
    await store.close()
    await copy.close()


async def test_without_room_none_is_made_and_the_examination_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the store must be free. The next is tried a day later, and those that are there stay."""
    calendar = Calendar()
    backups = await begun(tmp_path / "store.db", calendar)
    statvfs = os.statvfs

    def full(path: Path) -> os.statvfs_result:
        found = list(statvfs(path))
        found[4] = 1  # f_bavail
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "statvfs", full)
    backups.make()
    assert backups.listed() == []
    assert not backups.is_due()
    store = await SqliteStore.open(tmp_path / "store.db")
    report = await store.examine()
    await store.close()
    assert report.clean
    assert report.advice == (f"the last automatic backup was not made: {backups.trouble()}",)
    assert "KiB are free, and " in report.advice[0]


async def test_a_damaged_store_costs_no_backup(tmp_path: Path) -> None:
    """The copy is verified and thrown away; nothing is left of it, and the last good one stays."""
    calendar = Calendar()
    path = tmp_path / "store.db"
    backups = await begun(path, calendar)
    backups.make()
    calendar.now_s += DAY_S + 1
    data = path.read_bytes()
    path.write_bytes(data[: 10 * 4096] + garbage(4096, 1) + data[11 * 4096 :])
    backups.make()
    assert len(backups.listed()) == 1
    assert "damaged" in (backups.trouble() or "")
    assert sorted(each.name for each in backups.folder.iterdir()) == [
        backups.listed()[0].name,
        "last",
        "lock",
    ]


async def test_only_one_process_makes_it(tmp_path: Path) -> None:
    """Whoever finds the lock taken leaves it to the other; what a dead process left is swept."""
    backups = await begun(tmp_path / "store.db", Calendar())
    other = FileLock(backups.folder / "lock")
    other.acquire()
    backups.make()
    assert (backups.listed(), backups.is_due()) == ([], True)
    other.close()
    (backups.folder / ".20270101-000000.db.abcd").touch()
    backups.make()
    assert len(backups.listed()) == 1
    assert not list(backups.folder.glob(".*"))


async def test_the_first_commit_of_a_process_asks_for_it(tmp_path: Path) -> None:
    """Once, and only when it is due; reading asks for nothing."""
    path = tmp_path / "store.db"
    asked: list[Path] = []
    for due in (False, False, True):
        store = await SqliteStore.open(path, start_backup=asked.append)
        await store.sessions(SessionQuery())
        assert asked == []
        if due:
            os.utime(tmp_path / "store.db-backups" / "last", (0, 0))
        await store.commit(Batch((session(),)))
        await store.commit(Batch((session(),)))
        await store.close()
    assert asked == [path]


async def test_a_process_that_writes_for_days_asks_each_day(tmp_path: Path) -> None:
    """It looks once an hour, and goes on where one could not be started."""
    path, clock = tmp_path / "store.db", FakeClock()
    asked: list[Path] = []

    def start(store: Path) -> None:
        asked.append(store)
        if len(asked) == 1:
            raise OSError("no process can be started")

    store = await SqliteStore.open(path, clock=clock, start_backup=start)
    counts = []
    for hours in (0, 1, 1, 0, 1):
        clock.advance(hours * 3_600_000)
        await store.commit(Batch((session(),)))
        counts.append(len(asked))
        os.utime(tmp_path / "store.db-backups" / "last", (0, 0))
        await store.commit(Batch((session(),)))
    await store.close()

    assert counts == [0, 1, 2, 2, 3]
    assert asked == [path] * 3


async def test_a_clock_that_ran_ahead_costs_no_later_backup(tmp_path: Path) -> None:
    """The one just made stays, and those of the future go first: they were the newest for ever."""
    calendar = Calendar()
    backups = await begun(tmp_path / "store.db", calendar)
    for day in range(3):
        calendar.now_s = NOW_S + 365 * DAY_S + day * (DAY_S + 1)
        backups.make()
    future = [path.name for path in backups.listed()]
    assert backups.concerns() == ()
    made: list[str] = []
    for day in range(4):
        calendar.now_s = NOW_S + day * (DAY_S + 1)
        backups.make()
        made.insert(0, time.strftime("%Y%m%d-%H%M%S.db", time.gmtime(calendar.now_s)))
        kept = [path.name for path in backups.listed()]
        assert kept == [*made, *future][:3]
        told = "\n".join(backups.concerns())
        assert all((name in told) == (name in future) for name in kept)


async def test_trouble_with_the_folder_fails_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in its place, another user's folder, a start that fails: doctor names what can be mended."""

    def fails(_: Path) -> None:
        raise ValueError("embedded null byte")

    path, folder = tmp_path / "store.db", tmp_path / "store.db-backups"
    folder.write_text("not a folder")
    for state in ("a file", "closed", "due"):
        store = await SqliteStore.open(path, start_backup=fails)
        receipt = await store.commit(Batch((session(),)))
        await store.close()
        assert receipt.numbers
        told = Backups(Database(path)).concerns()
        if state == "a file":
            assert told == (f"{folder} is no folder, so no automatic backup is made; move it away",)
            folder.unlink()
            folder.mkdir()
            (folder / "last").touch()
            os.utime(folder / "last", (0, 0))
            deny(folder, monkeypatch)
        elif state == "closed":
            assert told == (f"{folder} cannot be written by this user, so no automatic backup is made",)
            monkeypatch.undo()
        else:
            assert told == ()


def deny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's folder, also for root."""
    access, stat = os.access, Path.stat

    def denied(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.parent == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and access(path, mode))
    monkeypatch.setattr(Path, "stat", denied)


async def test_backups_that_are_never_made_are_told_by_the_facts(tmp_path: Path) -> None:
    """Not by the note of the last try, which a full disk leaves empty: written lately, backed up long ago."""
    calendar = Calendar()
    path = tmp_path / "store.db"
    backups = await begun(path, calendar)

    def told(*, made: int, written: int) -> tuple[str, ...]:
        os.utime(path.with_name("store.db-lock"), (made, made))
        for each in tmp_path.glob("store.db*"):
            if each.name in ("store.db", "store.db-wal"):
                os.utime(each, (written, written))
        return backups.concerns()

    now_s, day_s = int(NOW_S), int(DAY_S)
    missing = "no automatic backup was made since 2027-01-05, although the store was written"
    assert told(made=now_s - 10 * day_s, written=now_s) == (missing,)
    assert told(made=now_s - day_s, written=now_s) == ()
    backups.make()
    assert told(made=now_s - 10 * day_s, written=now_s) == ()
    calendar.now_s += 3 * DAY_S
    assert told(made=now_s, written=now_s + 60) == ()
    assert told(made=now_s, written=now_s + 2 * day_s) == (missing.replace("05", "15"),)


async def test_a_try_that_no_byte_is_free_to_note_is_not_taken_for_a_success(tmp_path: Path) -> None:
    """What the note said before stays; a longer one is not left behind a shorter one."""
    backups = await begun(tmp_path / "store.db", Calendar())
    last = backups.folder / "last"
    (backups.folder / "lock").mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    last.write_text("no room")
    os.utime(last, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        backups.make()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (backups.trouble(), backups.is_due()) == ("no room", False)
    os.utime(last, (0, 0))
    backups.make()
    assert backups.trouble() == f"{backups.folder / 'lock'}: Is a directory"
    (backups.folder / "lock").rmdir()
    os.utime(last, (0, 0))
    backups.make()
    assert (backups.trouble(), len(backups.listed())) == (None, 1)

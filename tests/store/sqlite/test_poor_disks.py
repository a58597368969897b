"""A disk that does not give all of a file, and one on which no file has two names: what can be saved is."""

import contextlib
import errno
import os
import shutil
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest

from holdfast.cli.damaged_store import keep_copy
from holdfast.cli.session.whole_file import write_whole
from holdfast.clock import SystemClock
from holdfast.errors import ContextError, StoreDamaged, StoreError
from holdfast.store.batch import Batch
from holdfast.store.sqlite.backups import copy
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.examine import examine
from holdfast.store.sqlite.exchange import exchange
from holdfast.store.sqlite.salvage.log_file import log_trouble
from holdfast.store.sqlite.salvage.raw_file import SECTOR, opened_raw
from holdfast.store.sqlite.salvage.rescue import salvage, survey
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session
from tests.store.sqlite import damage

CLOCK = SystemClock()
Fails = Callable[[Path, int, int], None]


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Fails:
    """Says which bytes of a file the disk does not give."""
    real, broken = os.pread, list[tuple[Path, int, int]]()

    def pread(fd: int, size: int, at: int) -> bytes:
        """As the kernel: a reading stops in front of a bad place, and only one that begins there fails."""
        for path, begin, end in broken:
            if os.path.samestat(os.fstat(fd), path.stat()) and at < end and at + size > begin:
                if at < begin // SECTOR * SECTOR:
                    size = begin // SECTOR * SECTOR - at
                else:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(fd, size, at)

    monkeypatch.setattr(os, "pread", pread)
    return lambda path, begin, end: broken.append((path, begin, end))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store whose last sessions are in the log alone."""
    folder = tmp_path_factory.mktemp("poor")
    anyio.run(_make, folder)
    return folder


async def _make(folder: Path) -> None:
    opened, path = folder / "opened.db", folder / "store.db"
    await damage.make(opened)
    store = await SqliteStore.open(opened)
    try:
        for n in range(101, 105):
            await store.commit(Batch((session(ses(n)),)))
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(f"{opened}{suffix}", f"{path}{suffix}")
    finally:
        await store.close()


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    for each in made.glob("store.db*"):
        shutil.copyfile(each, tmp_path / each.name)
    return tmp_path / "store.db"


def test_only_the_sectors_that_fail_read_as_zeros(tmp_path: Path, unreadable: Fails) -> None:
    """However large the piece is that was asked for, and wherever it begins."""
    path, data = tmp_path / "file", os.urandom(20 * SECTOR + 100)
    path.write_bytes(data)
    unreadable(path, 5 * SECTOR + 7, 6 * SECTOR + 1)
    unreadable(path, 20 * SECTOR + 50, 20 * SECTOR + 60)
    expected = bytearray(data)
    expected[5 * SECTOR : 7 * SECTOR] = bytes(2 * SECTOR)
    expected[20 * SECTOR :] = bytes(100)
    for begin, end in ((0, len(data)), (3, 9 * SECTOR), (5 * SECTOR + 100, 5 * SECTOR + 200), (0, SECTOR)):
        with opened_raw(path) as raw:
            assert raw[begin:end] == bytes(expected[begin:end])
    with opened_raw(path) as raw:
        assert (raw[:], raw.unreadable) == (bytes(expected), 3 * SECTOR)


def test_what_is_read_at_once_is_held_once(tmp_path: Path) -> None:
    """A log may have hundreds of megabytes."""
    path, size = tmp_path / "file", 8 << 20
    path.write_bytes(bytes(size))
    with opened_raw(path) as raw:
        tracemalloc.start()
        try:
            assert len(raw[:]) == size
            assert tracemalloc.get_traced_memory()[1] < 1.5 * size
        finally:
            tracemalloc.stop()


def test_a_page_that_cannot_be_read_costs_what_is_on_it(store: Path, unreadable: Fails) -> None:
    """The rest comes back, and it is said how much the disk has kept."""
    store.with_name("store.db-wal").unlink()
    tenants = damage.tenants(store)
    page = max(tenants, key=lambda number: len(tenants[number]))
    unreadable(store, (page - 1) * damage.PAGE, page * damage.PAGE)
    report = salvage(Database(store), store.with_name("new.db"), CLOCK)
    came = damage.rows(store.with_name("new.db"))
    spared = {ses(n) for n in range(1, damage.SESSIONS + 1) if n != damage.ERASED} - tenants[page]
    assert spared <= set(came) & set(report.whole)
    assert not report.complete
    assert "the disk does not give 4096 bytes of the file" in report.gaps


def test_a_log_that_cannot_be_read_is_a_damaged_log(store: Path, unreadable: Fails) -> None:
    """No command goes on without it; what is in the file, and before the bad place, is salvaged."""
    log = store.with_name(store.name + "-wal")
    whole = set(survey(Database(store), CLOCK).whole)
    at = log.stat().st_size // 2
    unreadable(log, at, at + 1)
    assert log_trouble(log) == "the disk does not give 512 bytes of the log"
    report = survey(Database(store), CLOCK)
    assert whole - {ses(n) for n in range(101, 105)} <= set(report.whole)
    assert report.unproved
    assert not report.complete
    assert "the disk does not give 512 bytes of the log: more may be lost than is named" in report.gaps


class FailingFile(apsw.VFSFile):
    """A file whose fifth page cannot be read."""

    def __init__(self, name: Any, flags: Any) -> None:
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - APSW calls it so
        if offset == 4 * damage.PAGE:
            raise apsw.exception_for(apsw.SQLITE_IOERR_READ)
        return bytes(super().xRead(amount, offset))


class Failing(apsw.VFS):
    """A disk with such files."""

    def __init__(self) -> None:
        super().__init__("failing", "")

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:  # noqa: N802
        return FailingFile(name, flags)


def test_what_sqlite_cannot_read_is_damage(store: Path) -> None:
    """So every command names doctor, and doctor says what can be saved."""
    store.with_name("store.db-wal").unlink()
    vfs = Failing()
    database = Database(store, vfs="failing")
    db = database.connect(readonly=True)
    try:
        found = examine(db, database, CLOCK, repair=False)
        assert [each.what for each in found.findings] == ["SQLite: the disk does not give all of it"]
        with pytest.raises(StoreDamaged, match="the disk does not give all of it"):
            examine(db, database, CLOCK, repair=True)
    finally:
        with contextlib.suppress(apsw.IOError):  # It says so once more.
            db.close()
        vfs.unregister()


def test_a_copy_of_what_cannot_be_read_has_zeros(store: Path, unreadable: Fails) -> None:
    """The copy that is made before a repair does not stop it."""
    unreadable(store, 3 * SECTOR, 3 * SECTOR + 1)
    target = store.with_name("kept")
    assert keep_copy(store, target) == [target, store.with_name("kept-wal")]
    expected = bytearray(store.read_bytes())
    expected[3 * SECTOR : 4 * SECTOR] = bytes(SECTOR)
    assert target.read_bytes() == bytes(expected)


def test_half_of_a_copy_does_not_stay(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next try may have the same name, and the message has the place that was full."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = store.with_name("kept")
    monkeypatch.setattr("holdfast.store.sqlite.salvage.raw_file.copy_raw", full)
    with pytest.raises(StoreError, match="kept could not be written: No space left"):
        keep_copy(store, target)
    assert not list(store.parent.glob("kept*"))


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on FAT, exFAT and some network disks."""

    def link(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)


async def pieces() -> AsyncIterator[bytes]:
    """A file of two."""
    yield b"one"
    yield b"two"


@pytest.mark.usefixtures("without_links")
async def test_files_are_made_without_hard_links_and_never_over_another(store: Path) -> None:
    """A salvage, a backup, an export; of the store and of its draft nothing else is left."""
    new, backup, out = (store.with_name(name) for name in ("new.db", "backup.db", "out.json"))
    assert salvage(Database(store), new, CLOCK).complete
    copy(Database(store), backup)
    await write_whole(pieces(), out)
    assert set(damage.rows(new)) == set(damage.rows(backup))
    assert out.read_bytes() == b"onetwo"
    assert {each.stat().st_mode & 0o777 for each in (new, backup, out)} == {0o600}
    assert not [each.name for each in store.parent.iterdir() if each.name.startswith(".")]
    with pytest.raises(StoreError, match="exists already"):
        copy(Database(store), backup)
    with pytest.raises(ContextError, match="File exists"):
        await write_whole(pieces(), out)


@pytest.mark.usefixtures("without_links")
def test_an_exchange_without_hard_links_is_refused_with_the_way_out(store: Path) -> None:
    """Nothing has changed then."""
    draft = store.with_name("draft")
    copy(Database(store), draft)
    before = {each.name: each.read_bytes() for each in store.parent.glob("store.db*")}
    with pytest.raises(StoreError, match=r"has no hard links, .* --salvage NEW"):
        exchange(Database(store), draft, store.with_name("aside"))
    after = {each.name: each.read_bytes() for each in store.parent.glob("store.db*")}
    assert {name: after[name] for name in ("store.db", "store.db-wal")} == {
        name: before[name] for name in ("store.db", "store.db-wal")
    }
    assert not list(store.parent.glob("aside*"))
    assert not list(store.parent.glob("*-exchange"))

"""An exchange that is cut off, fails, or meets what another process did meanwhile: nothing is lost."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import Refused, StoreError, StoreMissing
from holdfast.file_lock import FileLock
from holdfast.store.batch import Batch
from holdfast.store.sqlite.backups import copy
from holdfast.store.sqlite.cut_off import settle
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.draft import SUFFIXES, draft_beside, drafting
from holdfast.store.sqlite.exchange import beside, exchange
from holdfast.store.sqlite.identity import identify
from holdfast.store.sqlite.salvage.rescue import survey
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import ses, session

OLD, NEW = {ses(1), ses(2)}, {ses(1)}
STEPS = 9
"""An exchange of a file and its log completes at this one; without a file, one earlier."""


class Killed(BaseException):
    """What no clean-up sees, as a SIGKILL."""


def stop_at(step: int) -> Callable[[str], None]:
    """A failpoint that ends the process there."""
    passed = iter(range(1, 100))

    def stop(_: str) -> None:
        if next(passed) == step:
            raise Killed

    return stop


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two sessions, one of them in the log alone, and a draft with the other."""
    folder = tmp_path_factory.mktemp("left")
    anyio.run(_leave, folder)
    return folder


async def _leave(folder: Path) -> None:
    opened, path = folder / "opened.db", folder / "store.db"
    store = await SqliteStore.open(opened)
    await store.commit(Batch((session(ses(1)),)))
    await store.close()
    copy(Database(opened), folder / "draft")
    store = await SqliteStore.open(opened)
    try:
        await store.commit(Batch((session(ses(2)),)))
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(f"{opened}{suffix}", f"{path}{suffix}")
    finally:
        await store.close()
    for each in folder.glob("opened*"):
        each.unlink()


@pytest.fixture
def store(left: Path, tmp_path: Path) -> Database:
    """A copy of that folder."""
    for each in left.iterdir():
        shutil.copyfile(each, tmp_path / each.name)
    return Database(tmp_path / "store.db")


def ids(database: Database) -> set[str]:
    """The sessions of a store, opened as by any command."""
    database.prepare(create=False)
    with contextlib.closing(database.connect(readonly=True)) as db:
        return {id for (id,) in db.execute("SELECT id FROM session WHERE data IS NOT NULL")}


def cut(store: Database, step: int) -> bool:
    """Whether the exchange was stopped at that step."""
    place = store.path.parent
    try:
        exchange(store, place / "draft", place / "aside", failpoint=stop_at(step))
    except Killed:
        return True
    return False


@pytest.mark.parametrize("by", ["a salvage", "a command"])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_an_exchange_that_was_cut_off_is_undone(store: Database, step: int, by: str) -> None:
    """At each step: the next command of any kind sees both sessions; or the new file, once it is in place."""
    place = store.path.parent
    was_cut = cut(store, step)
    assert was_cut == (step < STEPS)
    if by == "a salvage":
        looked = survey(store, SystemClock())
        assert set(looked.whole) == (OLD if step < STEPS - 1 else NEW)
        assert looked.complete
    assert ids(store) == (OLD if step < STEPS - 1 else NEW)
    assert not list(place.glob("*-exchange"))
    if step < STEPS - 1:
        assert not list(place.glob("aside*"))
        assert (place / "draft").exists() == (step == 1)  # Not noted yet: the next draft removes it.
    else:
        (place / "aside-wake").touch()
        assert ids(Database(place / "aside")) == OLD


@pytest.mark.parametrize("step", range(1, STEPS))
def test_a_log_alone_keeps_its_name(store: Database, step: int) -> None:
    """Of a lost file, too, the log is where it was, or kept under its other name."""
    place = store.path.parent
    store.path.unlink()
    log = store.log_path.read_bytes()
    was_cut = cut(store, step)
    settle(store)
    kept = store.log_path if was_cut and not store.path.exists() else place / "aside-wal"
    assert kept.read_bytes() == log
    assert store.log_path.exists() != store.path.exists()


def test_what_is_written_after_the_cut_stays(store: Database) -> None:
    """Until the removal both names are the file's: its log is played, and not played again."""
    assert cut(store, 4)
    assert store.path.samefile(store.path.with_name("aside"))
    with contextlib.closing(store.connect()) as db:
        db.execute("UPDATE session SET data=NULL WHERE id=?", (ses(1),))
    assert not store.log_path.exists()
    settle(store)
    assert not store.log_path.exists()
    assert ids(store) == {ses(2)}


@pytest.mark.parametrize("step", range(5, STEPS - 1))
def test_an_empty_file_that_was_made_meanwhile_does_not_stay(store: Database, step: int) -> None:
    """Of a process that opened the store in the moment in which its file had no name."""
    assert cut(store, step)
    store.path.touch()
    assert ids(store) == OLD
    assert not list(store.path.parent.glob("aside*"))


def test_an_empty_file_does_not_take_the_place_of_a_lost_one(store: Database) -> None:
    """There was no file before the exchange either: its log alone gets its name back."""
    store.path.unlink()
    log = store.log_path.read_bytes()
    assert cut(store, STEPS - 3)
    assert not store.log_path.exists()
    store.path.touch()
    settle(store)
    assert not store.path.exists()
    assert store.log_path.read_bytes() == log


def test_who_may_not_write_is_told_who_can_undo(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has lost its name for a moment: it is not called missing."""
    assert cut(store, STEPS - 2)

    def refuse(_: FileLock) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileLock, "__enter__", refuse)
    with pytest.raises(
        StoreError, match=r"was being exchanged .* cannot undo that \(Permission denied\); run"
    ):
        store.prepare(create=False)
    monkeypatch.undo()
    assert ids(store) == OLD


@pytest.mark.parametrize("stray", [b"", b"something of the user's"])
def test_what_lies_where_a_log_was_does_not_cost_the_log(store: Database, stray: bytes) -> None:
    """It was put there while the file had no name: an empty one goes, another is named, and the log stays."""
    assert cut(store, STEPS - 2)
    store.log_path.write_bytes(stray)
    if stray:
        with pytest.raises(StoreError, match=r"store.db-wal lies where the log of .* was .*; move it away"):
            store.prepare(create=False)
        store.log_path.unlink()
    assert ids(store) == OLD


def test_no_connection_makes_a_file(store: Database) -> None:
    """Only the making of a store does: one that is made beside an exchange would hide the store."""
    store.path.unlink()
    store.log_path.unlink()
    with pytest.raises(StoreError, match="cannot be opened"):
        store.connect()
    assert not store.path.exists()


def test_a_file_that_was_put_there_meanwhile_stays(store: Database) -> None:
    """Such as a backup that the user copied by hand: it does not get the log of the file that is aside."""
    place = store.path.parent
    shutil.copyfile(place / "draft", place / "mine")
    assert cut(store, 5)
    assert store.log_path.exists()
    shutil.copyfile(place / "mine", store.path)
    settle(store)
    assert not store.log_path.exists()
    assert ids(store) == NEW
    assert (place / "aside-wal").exists()


def test_an_exchange_that_fails_is_undone_at_once(store: Database) -> None:
    """A disk that is full, a user who interrupts."""
    place = store.path.parent
    for failure in (OSError(28, "full"), KeyboardInterrupt()):

        def fail(step: str, failure: BaseException = failure) -> None:
            if step == "rename":
                raise failure

        shutil.copyfile(place / "draft", place / "new")
        with pytest.raises(type(failure)):
            exchange(store, place / "new", place / "aside", failpoint=fail)
        assert sorted(each.name for each in place.glob("*")) == [
            "draft",
            "store.db",
            "store.db-lock",
            "store.db-wake",
            "store.db-wal",
        ]
    assert ids(store) == OLD


@pytest.mark.parametrize("change", ["file", "log", "gone"])
def test_only_what_was_seen_is_moved_aside(store: Database, change: str) -> None:
    """Another repair may have ended meanwhile, and a session have been committed into its store."""
    place = store.path.parent
    seen = identify(store)
    if change == "gone":
        store.path.unlink()
    else:
        path = store.path if change == "file" else store.log_path
        shutil.copyfile(path, place / "same")
        (place / "same").replace(path)
    with pytest.raises(Refused, match="was changed by another process meanwhile"):
        exchange(store, place / "draft", place / "aside", seen=seen)
    assert not list(place.glob("aside*"))


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal", "-shm"])
def test_a_name_is_free_with_its_logs(store: Database, suffix: str) -> None:
    """Else a log would lie beside a database that is not its own."""
    first = beside(store.path, "damaged")
    taken = store.path.with_name(first.name + suffix)
    taken.touch()
    assert beside(store.path, "damaged") != first
    with pytest.raises(StoreError, match="exists already; move it away"):
        exchange(store, store.path.with_name("draft"), first)


def test_drafts_of_killed_processes_are_removed(store: Database) -> None:
    """Those of a living one are not, nor what only looks like one."""
    place = store.path.parent
    dead = [".store.db.0123abcd", ".store.db.0123abcd-journal", "..store.db.0123abcd.4567cdef"]
    others = [".store.db.swp", ".store.db.0123abcdef", ".other.db.0123abcd"]
    for name in (*dead, *others):
        (place / name).touch()
    with drafting(store) as living:
        living.touch()
        assert not [name for name in dead if (place / name).exists()]
        with drafting(store):
            assert living.exists()
    assert not living.exists()
    assert all((place / name).exists() for name in others)


def test_a_store_that_is_made_meanwhile_is_not_called_lost(tmp_path: Path) -> None:
    """Another process makes the file, then the sign, just after the file was looked for."""

    class Late(Database):
        def _settle(self) -> None:
            Database(self.path).prepare(create=True)

    Late(tmp_path / "store.db").prepare(create=True)
    os.unlink(tmp_path / "store.db")  # noqa: PTH108
    with pytest.raises(StoreMissing, match="is gone although a store was here"):
        Database(tmp_path / "store.db").prepare(create=True)


def test_drafts_beside_a_file_that_is_to_be_made(tmp_path: Path) -> None:
    """Those of killed processes are removed by the next one that writes to that name. Those of living ones
    are not, nor is what belongs to another name, or only looks like a draft.
    """
    target = tmp_path / "new.db"
    dead = [".new.db.0123abcd", ".new.db.0123abcd-journal"]
    others = [".new.db.swp", ".other.db.0123abcd", "new.db.0123abcd"]
    for name in (*dead, *others):
        (tmp_path / name).touch()
    with draft_beside(tmp_path / "second.db") as elsewhere:
        with draft_beside(target):
            assert all((tmp_path / name).exists() for name in dead)
        elsewhere.touch()
    with draft_beside(target) as living:
        for suffix in SUFFIXES:
            living.with_name(living.name + suffix).touch()
        with draft_beside(target) as another:
            assert (living.exists(), another) == (True, another)
            assert another != living
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(others)


@pytest.mark.parametrize("step", range(2, STEPS - 1))
def test_an_undoing_that_is_killed_is_undone_by_the_next(
    store: Database, left: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each name that it gives or takes away, until it completes: no log is taken for another file's."""
    place = store.path.parent
    for last in range(1, 100):
        for each in place.iterdir():
            each.unlink()
        for each in left.iterdir():
            shutil.copyfile(each, place / each.name)
        assert cut(store, step)
        stop = stop_at(last)
        with monkeypatch.context() as patched:
            for name in ("unlink", "hardlink_to"):
                patched.setattr(Path, name, stopped(getattr(Path, name), stop))
            try:
                settle(store)
                break
            except Killed:
                pass
        assert ids(Database(store.path)) == OLD
        assert not list(place.glob("aside*"))
    assert last > 2


def stopped(do: Callable[..., None], stop: Callable[[str], None]) -> Callable[..., None]:
    """A change of a name that a kill may come before."""

    def change(*names: Path, **more: bool) -> None:
        stop("")
        do(*names, **more)

    return change


@pytest.mark.parametrize("step", range(2, STEPS - 1))
def test_an_exchange_begins_with_the_end_of_the_former(store: Database, step: int) -> None:
    """What was cut off is undone before anything is moved, so that both sessions are what is kept."""
    place = store.path.parent
    shutil.copyfile(place / "draft", place / "second")
    assert cut(store, step)
    kept = exchange(store, place / "second", place / "kept")
    assert kept == (place / "kept", place / "kept-wal")
    assert ids(store) == NEW
    assert not [*place.glob("aside*"), *place.glob("*-exchange")]
    (place / "kept-wake").touch()
    assert ids(Database(place / "kept")) == OLD


@pytest.mark.parametrize("name", ["../other", "folder/other", "/other", "..", ""])
@pytest.mark.parametrize("key", ["aside", "new"])
def test_a_note_only_names_what_lies_beside_it(store: Database, key: str, name: str) -> None:
    """One that names anything else is none of ours: nothing is moved, and the store is as it was."""
    place = store.path.parent
    before = {each.name: each.read_bytes() for each in place.iterdir()}
    (place / "aside").touch()
    names = {"aside": "aside", "new": "draft"} | {key: name}
    store.note_path.write_bytes(msgspec.json.encode(names))
    settle(store)
    (place / "aside").unlink()
    (place / "store.db-lock").unlink()
    assert {each.name: each.read_bytes() for each in place.iterdir()} == before

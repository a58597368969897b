"""A write that the disk lost leaves the former bytes of one page: each page reads well, and they disagree."""

import contextlib
from pathlib import Path

import anyio
import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreDamaged
from holdfast.store.batch import Batch, Remove
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.examine import examine
from holdfast.store.sqlite.salvage.report import Incomplete
from holdfast.store.sqlite.salvage.rescue import salvage, survey
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import msg, prt, record, ses, session, text, user
from tests.store.sqlite import damage

CLOCK = SystemClock()


def told(n: int, turn: int) -> int:
    """The number of an answer in the store that `damage.make` makes; its text has the next one."""
    return (turn * 10 + 2) * 4096 + n


def said(n: int, turn: int, words: str) -> Batch:
    """The text of an answer, written again."""
    return Batch((text(told(n, turn) + 4096, told(n, turn), words, session=ses(n)),))


def renamed(n: int) -> Batch:
    """A session with another title."""
    return Batch((session(ses(n), title=f"New {n}", parent=ses(n - 1) if n % 4 == 0 else None),))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of some fifty pages, all of it in its file."""
    path = tmp_path_factory.mktemp("lost") / "store.db"
    anyio.run(damage.make, path)
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    path = tmp_path / "store.db"
    path.write_bytes(made.read_bytes())
    return path


def write(path: Path, *batches: Batch, erased: tuple[int, ...] = ()) -> None:
    """Write to a store, all of it into its file."""

    async def work() -> None:
        store = await SqliteStore.open(path)
        for batch in batches:
            await store.commit(batch)
        for n in erased:
            await store.erase(ses(n))
        await store.close()

    anyio.run(work)


def lose(path: Path, before: bytes, table: str) -> None:
    """Give the leaves of a table that were written since their former bytes back."""
    data = path.read_bytes()
    for number in damage.leaves(path, table):
        data = damage.hit(data, number, damage.page(before, number))
    assert data != path.read_bytes()
    path.write_bytes(data)


def examined(path: Path, *, repair: bool = False) -> list[str]:
    """What an examination finds."""
    database = Database(path)
    with contextlib.closing(database.connect()) as db:
        return [finding.what for finding in examine(db, database, CLOCK, repair=repair).findings]


def test_a_text_whose_latest_state_was_lost_is_named(store: Path, tmp_path: Path) -> None:
    """SQLite's own check finds nothing: the former row expects no entry in the index that has the latest."""
    part = prt(999_999)
    write(store, Batch((text(999_999, told(4, 3), "draft", session=ses(4)),)))
    before = store.read_bytes()
    write(store, Batch((text(999_999, told(4, 3), "final", session=ses(4)),)))
    lose(store, before, "record")
    with contextlib.closing(apsw.Connection(str(store))) as db:
        assert db.execute("PRAGMA integrity_check").get == "ok"
    assert examined(store) == [f"SQLite: part {part} of {ses(4)} is not as index record_moved has it"]
    with pytest.raises(StoreDamaged, match="record_moved"):
        examined(store, repair=True)

    report = salvage(Database(store), tmp_path / "new.db", CLOCK)
    lost = (f"the latest state of part {part}",)
    assert report.incomplete == (Incomplete(ses(4), "Session 4 (incomplete)", lost),)
    assert not report.complete
    assert examined(tmp_path / "new.db") == []


def test_a_session_whose_latest_state_was_lost_is_named(store: Path, tmp_path: Path) -> None:
    """Its row has a lower number than the index of sessions that have changed."""
    before = store.read_bytes()
    write(store, renamed(4))
    lose(store, before, "session")
    assert "SQLite: row 4 missing from index session_head" in examined(store)

    report = salvage(Database(store), tmp_path / "new.db", CLOCK)
    lost = ("the latest state of its own record, or certainty of it,",)
    assert report.incomplete == (Incomplete(ses(4), "Session 4 (incomplete)", lost),)
    assert not report.complete


def test_a_removal_that_was_lost_is_named(store: Path) -> None:
    """The message that was removed is there again, and is not called the latest."""
    asked = (user(999_999, session=ses(3)),)
    write(store, Batch(asked))
    before = store.read_bytes()
    write(store, Batch((Remove(ses(3), "message", msg(999_999)),)))
    lose(store, before, "record")
    report = survey(Database(store), CLOCK)
    lost = (f"the latest state of message {msg(999_999)}",)
    assert report.incomplete == (Incomplete(ses(3), "Session 3 (incomplete)", lost),)


def test_a_message_that_was_made_again_and_lost_is_named(store: Path) -> None:
    """Its tombstone is left, under a lower key than the one by which the index knows it."""
    asked = (user(999_999, session=ses(3)),)
    write(store, Batch(asked), Batch((Remove(ses(3), "message", msg(999_999)),)))
    before = store.read_bytes()
    write(store, Batch(asked))
    lose(store, before, "record")
    report = survey(Database(store), CLOCK)
    lost = (f"message {msg(999_999)}",)
    assert report.incomplete == (Incomplete(ses(3), "Session 3 (incomplete)", lost),)


def test_a_session_that_was_made_again_and_lost_is_named(store: Path) -> None:
    """Its tombstone is left, and the index knows a living one of that id."""
    before = store.read_bytes()
    write(store, Batch((session(ses(damage.ERASED)), user(999_999, session=ses(damage.ERASED)))))
    lose(store, before, "session")
    report = survey(Database(store), CLOCK)
    lost = Incomplete(ses(damage.ERASED), "Recovered session (incomplete)", ("its own record",))
    assert report.incomplete == (lost,)


def test_a_session_that_was_made_again_and_removed_again_stays_removed(store: Path, tmp_path: Path) -> None:
    """The former one of its two tombstones is left: the index of tombstones still has it."""
    made = Batch((session(ses(99)),))
    write(store, made, erased=(99,))
    before = store.read_bytes()
    write(store, made, erased=(99,))
    lose(store, before, "session")
    report = salvage(Database(store), tmp_path / "new.db", CLOCK)
    assert (report.complete, ses(99) in report.whole) == (True, False)
    with contextlib.closing(apsw.Connection(str(tmp_path / "new.db"))) as db:
        assert db.execute("SELECT data FROM session WHERE id=?", (ses(99),)).fetchall() == [(None,)]


def test_a_project_of_which_only_numbers_were_lost_is_whole(store: Path) -> None:
    """Its row has no content of its own."""
    before = store.read_bytes()
    write(store, Batch((record(damage.SCOPE, "cache", "again", damage.CACHE),)))
    lose(store, before, "session")
    assert survey(Database(store), CLOCK).complete


def test_a_wrong_key_of_a_tombstone_in_an_index_is_no_loss(store: Path) -> None:
    """The index of names leads from the tombstone's name to a key without a row; nothing was made again."""
    with contextlib.closing(apsw.Connection(str(store))) as db:
        (k,) = db.execute("SELECT max(k) FROM record WHERE data IS NULL").fetchall()[0]
    data = store.read_bytes()
    key = int(str(k)).to_bytes(6)
    for number in damage.leaves(store, "record_id"):
        leaf = damage.page(data, number).replace(key, (int(str(k)) + 9999).to_bytes(6))
        data = damage.hit(data, number, leaf)
    assert data != store.read_bytes()
    store.write_bytes(data)
    report = survey(Database(store), CLOCK)
    assert (report.complete, report.incomplete) == (True, ())


def test_a_tombstone_stays_though_its_index_is_gone(store: Path) -> None:
    """The index of tombstones is empty: the session's row itself says that it was removed."""
    data, roots = store.read_bytes(), damage.roots(store)
    empty = damage.page(data, roots["session_owner"])
    store.write_bytes(damage.hit(data, roots["session_removed"], empty))
    report = survey(Database(store), CLOCK)
    assert (report.complete, ses(damage.ERASED) in report.whole) == (True, False)


def test_entries_of_an_index_that_should_be_gone_are_found(store: Path) -> None:
    """The sessions are no runs of an agent any more, and the index still says so: twenty are named."""
    many = [ses(200 + n) for n in range(25)]
    write(store, Batch(tuple(session(id, agentRun={"agent": "build"}) for id in many)))
    before = store.read_bytes()
    write(store, Batch(tuple(session(id) for id in many)))
    lose(store, before, "session_run")
    expected = [f"SQLite: session {id} is not as index session_run has it" for id in many]
    assert examined(store) == expected[:20]
    assert survey(Database(store), CLOCK).complete


def test_a_former_entry_beside_the_latest_one_is_found(store: Path) -> None:
    """A session went from one leaf of an index to another: the first still has its former entry, and each row
    has its own.
    """
    many = range(1000, 1600)
    write(store, Batch(tuple(session(ses(n), updated=n) for n in many)))
    before = store.read_bytes()
    write(store, Batch((session(ses(1000), updated=9999),)))
    data, leaves = store.read_bytes(), damage.leaves(store, "session_updated")
    (left,) = [n for n in leaves if (1000).to_bytes(2) in damage.page(before, n) and n != leaves[-1]]
    store.write_bytes(damage.hit(data, left, damage.page(before, left)))
    with contextlib.closing(apsw.Connection(str(store))) as db:
        assert db.execute("PRAGMA integrity_check").get == "ok"
    assert examined(store) == [f"SQLite: session {ses(1000)} is not as index session_updated has it"]


@pytest.mark.ci
def test_the_former_bytes_of_any_page_are_found(store: Path, tmp_path: Path) -> None:
    """Each page that a history changed is given its former bytes in turn: the examination says that something
    is wrong, and what a salvage calls whole has every row in its latest state.
    """
    before = store.read_bytes()
    many = [n for n in range(1, damage.SESSIONS + 1) if n != damage.ERASED]
    write(
        store,
        *(said(n, turn, f"again {damage.word(n)}") for n in many for turn in (1, 3)),
        *(Batch((Remove(ses(n), "message", msg(told(n, 2))),)) for n in many[::3]),
        *(Batch((record(ses(n), "todo", ses(n), []),)) for n in many[::2]),
        *(renamed(n) for n in many),
        erased=(9,),
    )
    sound, after = damage.rows(store), store.read_bytes()
    with contextlib.closing(apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        names = {int(str(page)): str(name) for page, name in db.execute("SELECT pageno, name FROM dbstat")}
    changed = [
        number
        for number in range(2, len(before) // damage.PAGE + 1)
        if number in names and damage.page(before, number) != damage.page(after, number)
    ]
    assert {"record", "session", "record_moved", "record_few"} <= {names[number] for number in changed}
    hurt, new = tmp_path / "hurt.db", tmp_path / "new.db"
    unnoticed, wrong = [], []
    for number in changed:
        hurt.write_bytes(damage.hit(after, number, damage.page(before, number)))
        if not examined(hurt):
            unnoticed.append(names[number])
        report = salvage(Database(hurt), new, CLOCK)
        came = damage.rows(new)
        wrong += [(names[number], id) for id in report.whole if came[id] != sound.get(id)]
        new.unlink()
    assert (unnoticed, wrong) == ([], [])

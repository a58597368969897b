"""Salvage believes no page that reads cleanly and is wrong: of another table or index, or one bit off."""

import contextlib
import tracemalloc
from pathlib import Path

import anyio
import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreError, StoreMissing
from holdfast.store.batch import Batch
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage import write
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.rescue import salvage, survey
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import assistant, ses, session, text, user
from tests.store.sqlite import damage

Rows = dict[str, tuple[object, list[tuple[object, ...]]]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose tables have inner pages."""
    path = tmp_path_factory.mktemp("salvage") / "store.db"
    anyio.run(damage.few, path)
    data, roots = path.read_bytes(), damage.roots(path)
    assert {damage.page(data, roots[name])[0] for name in ("session", "record")} == {5}
    return path


def salvaged(path: Path, data: bytes) -> tuple[SalvageReport, Rows]:
    """What comes back of a store when its file is this."""
    hurt, new = path.with_name("hurt.db"), path.with_name("new.db")
    hurt.write_bytes(data)
    new.unlink(missing_ok=True)
    report = salvage(Database(hurt), new, SystemClock())
    return report, damage.rows(new)


@pytest.mark.parametrize("table", ["record", "session"])
@pytest.mark.parametrize("other", ["record", "session", "quarantine"])
def test_a_root_that_is_another_tables_loses_nothing(store: Path, table: str, other: str) -> None:
    """The root overwritten with that of another table, inner or empty: every leaf is found without it."""
    sound, data, roots = damage.rows(store), store.read_bytes(), damage.roots(store)
    report, came = salvaged(store, damage.hit(data, roots[table], damage.page(data, roots[other])))
    assert came == sound
    assert report.complete


@pytest.mark.parametrize("bit", range(3))
def test_an_inner_page_that_lost_some_of_its_cells_loses_no_row(store: Path, bit: int) -> None:
    """One bit in the number of cells of an inner page: the tree reads cleanly, and is too small."""
    sound, data = damage.rows(store), store.read_bytes()
    root = bytearray(damage.page(data, damage.roots(store)["record"]))
    root[4] ^= 1 << bit
    _, came = salvaged(store, damage.hit(data, damage.roots(store)["record"], bytes(root)))
    assert came == sound


@pytest.mark.parametrize("other", ["session_head", "session_updated", "record_scoped", "record_parent"])
@pytest.mark.parametrize(
    "index", ["session_removed", "record_removed", "record_id", "session_head", "record_moved"]
)
def test_an_index_alone_removes_nothing(store: Path, index: str, other: str) -> None:
    """An index overwritten with another, whose entries look the same: what the tables still have is there,
    and in its latest state.
    """
    sound, data, roots = damage.rows(store), store.read_bytes(), damage.roots(store)
    report, came = salvaged(store, damage.hit(data, roots[index], damage.page(data, roots[other])))
    assert came == sound
    assert (report.complete, report.lost) == (True, ())


def test_what_is_put_aside_is_named_as_lost(store: Path) -> None:
    """The sessions are gone, and the index of their names is empty: their records are kept in quarantine,
    and the report says so.
    """
    data, roots = store.read_bytes(), damage.roots(store)
    empty = damage.page(data, roots["session_owner"])
    for number in damage.leaves(store, "session"):
        data = damage.hit(data, number, bytes(damage.PAGE))
    report, came = salvaged(store, damage.hit(data, roots["sqlite_autoindex_session_1"], empty))
    assert came == {}
    assert not report.complete
    assert len(report.lost) == damage.FEW_RECORDS
    assert all(line.endswith(": its session is missing") for line in report.lost)


def test_a_wrong_key_in_an_index_is_no_loss(store: Path) -> None:
    """The last byte of a leaf of names is part of a row's key: the row itself is there."""
    sound, data = damage.rows(store), store.read_bytes()
    number = damage.leaves(store, "record_id")[0]
    leaf = bytearray(damage.page(data, number))
    leaf[-1] ^= 0x40
    report, came = salvaged(store, damage.hit(data, number, bytes(leaf)))
    assert came == sound
    assert report.complete


@pytest.mark.parametrize(
    ("at", "value"), [(16, 0x20), (16, 0x08), (16, 0x02), (17, 1), (17, 3), (20, 16), (20, 255)]
)
def test_one_byte_of_the_header_loses_nothing(store: Path, at: int, value: int) -> None:
    """Another page size, or space that is reserved in each page: the tables say which size is right."""
    sound, data = damage.rows(store), bytearray(store.read_bytes())
    data[at] = value
    report, came = salvaged(store, bytes(data))
    assert came == sound
    assert report.complete


def test_two_sessions_with_one_id_are_told_apart_by_the_index(store: Path) -> None:
    """The id in a session's row was changed into another's: the index of names still has the right one."""
    sound, data = damage.rows(store), store.read_bytes()
    for number in damage.leaves(store, "session"):
        leaf = damage.page(data, number).replace(ses(2).encode(), ses(1).encode())
        data = damage.hit(data, number, leaf)
    report, came = salvaged(store, data)
    assert came == sound
    assert report.complete


def test_of_two_sessions_with_one_id_the_second_gets_another(store: Path) -> None:
    """Nothing says any more which is which: both come, and the report names the one with a new id."""
    sound, data = damage.rows(store), store.read_bytes()
    for table in ("session", "sqlite_autoindex_session_1"):
        for number in damage.leaves(store, table):
            leaf = damage.page(data, number).replace(ses(2).encode(), ses(1).encode())
            data = damage.hit(data, number, leaf)
    report, came = salvaged(store, data)
    (other,) = report.incomplete
    assert other.id not in sound
    assert other.lost == (f"its id, since another session has {ses(1)}",)
    assert {*came} == {*sound} - {ses(2)} | {other.id}
    assert came[other.id][1] == sound[ses(2)][1]
    assert came[ses(1)] == sound[ses(1)]


def test_a_disk_that_is_full_is_named(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new store cannot be written: an error of ours says so, and nothing of it is left."""

    def fill(*_: object) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(write, "_fill", fill)
    with pytest.raises(StoreError, match="is full"):
        salvage(Database(store), tmp_path / "new.db", SystemClock())
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_given_twice_takes_no_record_away(store: Path) -> None:
    """The number of one record became that of another session's: both records come, the other as it was."""
    sound, hurt, new = damage.rows(store), store.with_name("hurt.db"), store.with_name("new.db")
    taker, given = 1, 6
    hurt.write_bytes(store.read_bytes())
    with contextlib.closing(apsw.Connection(str(hurt))) as db:
        rows = "(SELECT seq FROM record WHERE session=(SELECT n FROM session WHERE id=?))"
        db.execute("DROP INDEX record_moved")
        db.execute(
            f"UPDATE record SET seq=(SELECT max(seq) FROM {rows}) WHERE seq=(SELECT min(seq) FROM {rows})",
            (ses(given), ses(taker)),
        )
        db.execute("PRAGMA journal_mode=DELETE").fetchall()
    new.unlink(missing_ok=True)
    report = salvage(Database(hurt), new, SystemClock())
    came = damage.rows(new)
    assert report.complete
    assert {id: rows for id, rows in came.items() if id != ses(taker)} == {
        id: rows for id, rows in sound.items() if id != ses(taker)
    }
    assert [row[-1] for row in came[ses(taker)][1]] == [row[-1] for row in sound[ses(taker)][1]]


def test_a_store_that_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    """Not even a lock is made beside a name that was mistyped."""
    with pytest.raises(StoreMissing, match="there is no store"):
        salvage(Database(tmp_path / "missing.db"), tmp_path / "new.db", SystemClock())
    assert list(tmp_path.iterdir()) == []


def test_a_salvage_holds_no_texts_in_memory(tmp_path: Path) -> None:
    """Four megabytes of text are looked at, one text at a time."""
    path, size = tmp_path / "store.db", 200_000

    async def make() -> None:
        store = await SqliteStore.open(path)
        said = [text((n + 99) * 4096 + 1, 2 * 4096 + 1, "x" * size, session=ses(1)) for n in range(20)]
        asked = (user(4096 + 1, session=ses(1)), assistant(2 * 4096 + 1, 4096 + 1, session=ses(1)))
        await store.commit(Batch((session(ses(1)), *asked, *said)))
        await store.close()

    anyio.run(make)
    tracemalloc.start()
    try:
        assert survey(Database(path), SystemClock()).records == 22
        assert tracemalloc.get_traced_memory()[1] < 8 * size
    finally:
        tracemalloc.stop()


def test_whether_a_row_is_a_session_is_said_by_its_id(store: Path) -> None:
    """A session that is called a project, and a project with content that is no JSON: both come."""
    sound, hurt, new = damage.rows(store), store.with_name("hurt.db"), store.with_name("new.db")
    hurt.write_bytes(store.read_bytes())
    with contextlib.closing(apsw.Connection(str(hurt))) as db:
        db.execute("UPDATE session SET scope=1 WHERE id=?", (ses(1),))
        db.execute(
            "INSERT INTO session(id, scope, position, seq, head, data) "
            "VALUES ('project_x', 1, 900, 900, 900, '{')"
        )
        db.execute("PRAGMA journal_mode=DELETE").fetchall()
    new.unlink(missing_ok=True)
    report = salvage(Database(hurt), new, SystemClock())
    assert {*report.whole} == {*sound}
    assert damage.rows(new) == sound | {"project_x": ("", [])}

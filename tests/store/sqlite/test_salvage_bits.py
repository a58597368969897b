"""Single bits of rows: what a page of another kind still tells of them is told."""

import contextlib
from pathlib import Path

import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.examine import examine
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.rescue import salvage
from holdfast.store.tables.connection import Connection
from holdfast.testing.store_contract.build import ses
from tests.store.sqlite import damage

CLOCK = SystemClock()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound store, all of it in its file."""
    import anyio

    path = tmp_path_factory.mktemp("bits") / "store.db"
    anyio.run(damage.make, path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA journal_mode=DELETE").fetchall()
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    path = tmp_path / "store.db"
    path.write_bytes(made.read_bytes())
    return path


def one(path: Path, sql: str, *values: object) -> tuple[object, ...]:
    """The first row of a query."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        db: Connection = opened
        found: tuple[object, ...] = db.execute(sql, values).fetchall()[0]
        return found


def change(path: Path, table: str, old: bytes, new: bytes) -> None:
    """Change some bytes wherever they stand in the leaves of a table, not in its indexes: of a row that was
    written again, former states lie there too.
    """
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        db: Connection = opened
        sql = "SELECT pageno FROM dbstat WHERE name=? AND pagetype='leaf'"
        pages = [page for (page,) in db.execute(sql, (table,))]
    data = bytearray(path.read_bytes())
    for page in pages:
        begin = (page - 1) * damage.PAGE
        data[begin : begin + damage.PAGE] = data[begin : begin + damage.PAGE].replace(old, new)
    assert data != path.read_bytes()
    path.write_bytes(data)


def salvaged(path: Path) -> tuple[SalvageReport, str]:
    """A salvage into a sound store, and all that is named as lost."""
    target = path.with_name("new.db")
    report = salvage(Database(path), target, CLOCK)
    database = Database(target)
    with contextlib.closing(database.connect()) as db:
        assert examine(db, database, CLOCK, repair=False).findings == ()
    return report, " ".join([*report.lost, *(str(each) for each in report.incomplete)])


def test_a_session_whose_id_was_changed_is_told(store: Path) -> None:
    """The index has another: it may be either, so neither is called whole."""
    changed = ses(3).replace("3A", "fA")
    change(store, "session", ses(3).encode(), changed.encode())
    report, lost = salvaged(store)
    assert not report.complete
    assert changed not in report.whole
    assert ses(3) in lost
    assert changed in lost


def test_a_record_whose_id_was_changed_is_told(store: Path) -> None:
    """As with a session's id."""
    (id,) = one(store, "SELECT id FROM record WHERE kind=1 AND data IS NOT NULL ORDER BY k LIMIT 1")
    assert isinstance(id, str)
    changed = id[:-1] + "C"
    change(store, "record", id.encode(), changed.encode())
    report, lost = salvaged(store)
    assert not report.complete
    assert id in lost
    assert changed in lost


def test_a_record_whose_key_became_that_of_another_is_told(store: Path) -> None:
    """Two rows lie under one key: the one that cannot stay is named, and set aside."""
    k, id = one(
        store,
        "SELECT r.k, r.id FROM record r JOIN record p ON p.k=r.k-1 AND p.kind=1 AND r.parent=p.k "
        "WHERE r.kind=2 AND r.k & 1 AND r.data IS NOT NULL",
    )
    assert isinstance(k, int)
    change(store, "record", varint(k), varint(k - 1))
    report, lost = salvaged(store)
    assert not report.complete
    assert str(id) in lost
    assert one(store.with_name("new.db"), "SELECT count(*) FROM quarantine WHERE id=?", id) == (1,)


def varint(number: int) -> bytes:
    """As SQLite writes a key."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(0x80 | number & 0x7F)
    return bytes(reversed(groups))


@pytest.mark.parametrize("kind", ["session", "record"])
@pytest.mark.parametrize("first", [b"z", b"\xfb"])
def test_json_that_lost_its_first_byte_is_set_aside(store: Path, kind: str, first: bytes) -> None:
    """Nothing looks at it when a record is read: doctor does, and a salvage goes on behind it."""
    sql = "SELECT id, data FROM session WHERE id=?"
    if kind == "record":
        sql = (
            "SELECT r.id, r.data FROM record r JOIN session s ON s.n=r.session "
            "WHERE r.kind=2 AND r.data IS NOT NULL AND s.id=?"
        )
    id, data = one(store, sql, ses(3))
    beginning = str(data)[:300].encode()
    change(store, kind, beginning, first + beginning[1:])
    database = Database(store)
    with contextlib.closing(database.connect()) as db:
        findings = examine(db, database, CLOCK, repair=False).findings
    assert {each.what for each in findings} == {"its JSON cannot be read: it does not begin as an object"}
    report, lost = salvaged(store)
    assert ("its own record" if kind == "session" else str(id)) in lost
    assert ses(3) in lost
    assert len(report.whole) >= damage.SESSIONS - 3

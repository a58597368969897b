"""Examinations: they say where they are, end when nobody waits, and grow only with the store."""

import asyncio
import contextlib
import re
import threading
from pathlib import Path

import anyio
import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.store import examining
from holdfast.store.batch import Batch
from holdfast.store.examining import Ended, Examining
from holdfast.store.open import open_store
from holdfast.store.query import SearchQuery
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.examine import examine
from holdfast.testing.store_contract.build import msg, prt, ses, session, text, user
from tests.store.postgres.server import schema_url

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
SESSIONS = 20


async def fill(url: str) -> None:
    """A store with some sessions and a search index."""
    store = await open_store(url)
    puts = [
        put
        for n in range(1, SESSIONS + 1)
        for put in (session(ses(n)), user(n, session=ses(n)), text(n, n, "words", session=ses(n)))
    ]
    await store.commit(Batch(tuple(puts)))
    await store.search(SearchQuery("words"))
    await store.close()


def test_an_examination_that_is_ended_goes_no_further() -> None:
    """Neither its own steps nor a statement of SQLite's, however long."""
    looked: list[tuple[str, int, int]] = []
    work = Examining(lambda *where: looked.append(where))
    work.at("sessions", 1, 2)
    work.end()
    with pytest.raises(Ended):
        work.at("sessions", 2, 2)
    assert looked == [("sessions", 1, 2)]

    with contextlib.closing(apsw.Connection(":memory:")) as db:
        with work.statements(db), pytest.raises(apsw.InterruptError):
            db.execute(ENDLESS).fetchall()
        assert db.execute("SELECT 1").get == 1


@pytest.mark.parametrize(
    "engine",
    ["sqlite", "file", pytest.param("postgres", marks=pytest.mark.ci("a database server does the work"))],
)
async def test_an_examination_says_how_many_sessions_it_has_seen(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them, and of how many."""
    monkeypatch.setattr(examining, "PAUSE_S", 0)
    url = schema_url(tmp_path) if engine == "postgres" else f"{engine}://{tmp_path}/store"
    await fill(url)
    looked: list[tuple[str, int, int]] = []
    store = await open_store(url)
    report = await store.examine(progress=lambda *where: looked.append(where))
    await store.close()
    assert (report.sessions, report.findings) == (SESSIONS, ())
    assert [each for each in looked if each[0] == "sessions"] == [
        ("sessions", done, SESSIONS) for done in range(SESSIONS)
    ]


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("engine", ["sqlite", "file"])
async def test_a_cancelled_examination_ends_in_its_thread(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, repair: bool
) -> None:
    """The next thing it would look at, it does not look at: so the store can be closed."""
    monkeypatch.setattr(examining, "PAUSE_S", 0)
    url = f"{engine}://{tmp_path}/store"
    await fill(url)
    loop, begun, held = asyncio.get_running_loop(), anyio.Event(), threading.Event()
    looked: list[str] = []

    def progress(what: str, done: int, total: int, /) -> None:
        looked.append(what)
        loop.call_soon_threadsafe(begun.set)
        held.wait(20)

    store = await open_store(url)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: store.examine(repair=repair, progress=progress))
        await begun.wait()
        tasks.cancel_scope.cancel()
    held.set()
    await store.close()
    assert len(looked) == 1


async def test_an_examination_walks_once_along_each_table(tmp_path: Path) -> None:
    """Whatever is asked for each session, record or text is found by a key: its time grows with the store."""
    path = tmp_path / "store"
    await fill(f"sqlite://{path}")
    asked: set[str] = set()

    def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        if bindings and "pragma_" not in sql:
            asked.add(sql)
        return True

    database = Database(path)
    with contextlib.closing(database.connect(readonly=True)) as db:
        db.exec_trace = trace
        assert examine(db, database, SystemClock(), repair=False).clean
        db.exec_trace = None
        plans = {
            row[3]
            for sql in asked
            for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))
        }
    # Once along each index of some rows, from its first entry to its last.
    along = re.compile(r"(SCAN|SEARCH) i USING (COVERING )?INDEX \w+( \(\w+>\?\))?")
    assert {plan for plan in plans if not along.fullmatch(plan)} == {
        "CORRELATED SCALAR SUBQUERY 1",
        "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
        "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        "SEARCH record USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH session USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH session USING INTEGER PRIMARY KEY (rowid>?)",
    }


async def test_records_under_the_key_of_another_session_are_found(tmp_path: Path) -> None:
    """Their session and their key disagree, whether that key belongs to a session or to none."""
    path = tmp_path / "store"
    await fill(f"sqlite://{path}")
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE record SET k=k+(1<<40) WHERE id=?", (prt(1),))
        db.execute("UPDATE record SET k=k+(500<<40) WHERE id=?", (prt(2),))
        db.execute("UPDATE record SET session=900 WHERE id=?", (msg(3),))
    store = await open_store(f"sqlite://{path}")
    found = {(each.what, each.where) for each in (await store.examine()).findings}
    await store.close()
    assert ("its numbers are out of order", f"part {prt(1)} of {ses(2)}") in found
    assert ("its numbers are out of order", f"record {prt(2)}") in found
    assert ("its session is missing", f"record {msg(3)}") in found

"""What only the SQLite engine promises: its settings, its format, its migrations, its backups."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import anyio.to_thread
import apsw
import psutil
import pytest

from holdfast.errors import InvalidInput, StoreError, StoreMissing, StoreTooNew
from holdfast.store.batch import Batch, Remove
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import Changes, JsonPage, MessagePage
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.tables import reader
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.records import RecordReader
from holdfast.testing.store_contract.build import S1, S2, msg, prt, session, text, user
from holdfast.testing.store_contract.world import same_page


async def made(path: Path) -> None:
    """A store with one session."""
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), user(1))))
    await store.close()


async def test_every_connection_is_durable_and_bounded(tmp_path: Path) -> None:
    """WAL, FULL, a bounded log, nothing of the schema trusted."""
    path = tmp_path / "store.db"
    await made(path)
    for readonly in (False, True):
        db = Database(path).connect(readonly=readonly)
        pragmas = ("journal_mode", "synchronous", "journal_size_limit", "temp_store", "trusted_schema")
        assert [db.execute(f"PRAGMA {name}").get for name in pragmas] == ["wal", 2, 16777216, 2, 0]
        db.close()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    """With a clear message, and nothing is changed."""
    path = tmp_path / "store.db"
    await made(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE store SET value='99' WHERE key='format'")
    with pytest.raises(StoreTooNew, match="format 99"):
        await SqliteStore.open(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT value FROM store WHERE key='format'").get == "99"


async def test_a_store_that_vanished_is_not_made_anew(tmp_path: Path) -> None:
    """Neither when the file is gone nor when it is empty; a new place is made without a question."""
    path = tmp_path / "store.db"
    await made(path)
    path.unlink()
    with pytest.raises(StoreMissing, match="bring a backup back"):
        await SqliteStore.open(path)
    path.touch()
    with pytest.raises(StoreMissing, match="is empty although"):
        await SqliteStore.open(path)
    with pytest.raises(StoreMissing, match="there is no store"):
        await SqliteStore.open(tmp_path / "other.db", create=False)
    assert not (tmp_path / "other.db").exists()


async def test_a_store_from_before_the_partial_index_gets_it(tmp_path: Path) -> None:
    """The first stores of this format had another index in its place; the feed works on them too."""
    path = tmp_path / "store.db"
    await made(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("DROP INDEX record_moved; CREATE INDEX record_seq ON record(session, seq)")
    store = await SqliteStore.open(path)
    head = await store.head()
    await store.commit(Batch((user(1, agent="plan"),)))
    changes = await store.changes(head)
    await store.close()

    assert isinstance(changes, Changes)
    assert [each.record.id for each in changes.records] == [msg(1)]
    with contextlib.closing(apsw.Connection(str(path))) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE tbl_name='record'")}
    assert ("record_moved" in names, "record_seq" in names) == (True, False)


async def older(path: Path) -> None:
    """A store of a format before ours."""
    await made(path)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE store SET value='0' WHERE key='format'")


async def test_a_migration_makes_a_backup_first_and_runs_whole(tmp_path: Path) -> None:
    """One transaction; the backup holds the old format."""
    path = tmp_path / "store.db"
    await older(path)

    def step(db: Connection) -> None:
        db.execute("UPDATE session SET title='migrated'")

    store = await SqliteStore.open(path, database=Database(path, migrations=(step,), oldest=0))
    assert [record.id for record in (await store.sessions(SessionQuery())).sessions] == [S1]
    await store.close()
    with contextlib.closing(apsw.Connection(str(tmp_path / "store.db.format-0.backup"))) as db:
        assert db.execute("SELECT value FROM store WHERE key='format'").get == "0"
        assert db.execute("SELECT count(*) FROM record").get == 1


async def test_a_migration_that_would_lose_records_is_undone(tmp_path: Path) -> None:
    """Counts are verified before the commit; the store stays as it was, and so does its format."""
    path = tmp_path / "store.db"
    await older(path)
    before = None
    with contextlib.closing(apsw.Connection(str(path))) as db:
        before = db.execute("SELECT * FROM record").fetchall()

    def step(db: Connection) -> None:
        db.execute("DELETE FROM record")

    with pytest.raises(StoreError, match="records would have been lost"):
        await SqliteStore.open(path, database=Database(path, migrations=(step,), oldest=0))
    with contextlib.closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT * FROM record").fetchall() == before
        assert db.execute("SELECT value FROM store WHERE key='format'").get == "0"


async def test_a_backup_is_a_store_of_its_own(tmp_path: Path) -> None:
    """Made while the store is open; another incarnation, no owners; never over a file."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), user(1))))
    cursor = await store.head()
    await store.backup(str(copy))
    with pytest.raises(StoreError, match="exists already"):
        await store.backup(str(copy))
    await store.close()

    other = await SqliteStore.open(copy)
    assert type(await other.changes(cursor)).__name__ == "Resync"
    assert (await other.session(S1)) is not None
    assert (await other.examine()).findings == ()
    await other.close()


async def test_a_cursor_cannot_lead_into_another_session(tmp_path: Path) -> None:
    """A position beyond every message is refused, and a page stays inside its session."""
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.commit(Batch((session(), user(1), session(S2), user(2, session=S2))))
    for cursor in ("mfffffffffffffff", "m10000000000"):
        with pytest.raises(InvalidInput):
            await store.messages(MessageQuery(S1, before=cursor))
        with pytest.raises(InvalidInput):
            await store.messages(MessageQuery(S1, after=cursor))
    page = await store.messages(MessageQuery(S1, before="mffffffffff"))
    assert [message.info.id for message in page.messages] == [msg(1)]
    for limit in (None, 5):
        beyond = MessageQuery(S1, limit=limit, after="mffffffffff")
        assert await store.messages(beyond) == MessagePage(())
        assert await store.messages_json(beyond) == JsonPage(b"[]")
    await store.close()


async def test_what_is_removed_leaves_the_search_index_at_once(tmp_path: Path) -> None:
    """With its message, with its session, and when the id is made anew before anybody searches again."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), user(1), text(2, 1, "alpha"), session(S2), user(3, session=S2))))
    await store.commit(Batch((text(4, 3, "beta", session=S2),)))
    assert len(await store.search(SearchQuery("alpha"))) == 1
    await store.commit(Batch((Remove(S1, "message", msg(1)),)))
    await store.commit(Batch((user(1), text(2, 1, "gamma"))))
    await store.erase(S2)
    await store.commit(Batch((session(S2, title="plain"),)))
    found = [len(await store.search(SearchQuery(word))) for word in ("alpha", "beta", "gamma")]
    assert found == [0, 0, 1]
    assert (await store.examine()).findings == ()
    await store.close()
    with contextlib.closing(apsw.Connection(f"{path}-search")) as index:
        assert index.execute("SELECT count(*) FROM doc").get == 3


async def test_a_repair_keeps_everything_it_sets_aside_and_a_second_look_is_clean(tmp_path: Path) -> None:
    """A damaged message with its parts, a damaged session, records whose session is missing."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    await store.commit(
        Batch((session(), user(1), text(2, 1, "kept words"), user(3), session(S2, title="Two")))
    )
    await store.close()
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE record SET data='{broken' WHERE id=?", (msg(1),))
        db.execute("UPDATE session SET data='[]' WHERE id=?", (S2,))
        db.execute(
            "INSERT INTO record(k, session, kind, mark, seq, id, data) VALUES (9<<40, 9, 1, 0, 1, 'x', '{}')"
        )

    store = await SqliteStore.open(path)
    found = await store.examine()
    assert len(found.findings) == 3
    assert not found.clean
    mended = await store.examine(repair=True)
    assert [finding.mended for finding in mended.findings] == [True, True, True]
    assert (await store.examine()).findings == ()
    page = await store.messages(MessageQuery(S1))
    assert [message.info.id for message in page.messages] == [msg(3)]
    again = await store.session(S2)
    assert again is not None
    assert b'"title":"Two"' in again.data
    await store.close()
    with contextlib.closing(apsw.Connection(str(path))) as db:
        aside = db.execute("SELECT id, data FROM quarantine ORDER BY id").fetchall()
    assert {str(id): data for id, data in aside} == {
        msg(1): "{broken",
        prt(2): text(2, 1, "kept words").data.decode(),
        S2: "[]",
        "x": "{}",
    }


@pytest.mark.ci
async def test_a_broken_page_is_named_and_nothing_pretends_to_mend_it(tmp_path: Path) -> None:
    """The verdict says to restore a backup; no internal error comes out."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(), *(user(n) for n in range(1, 400)))))
    await store.close()
    content = bytearray(path.read_bytes())
    for offset in range(len(content) // 4096 * 3 // 4 * 4096, len(content), 4096):
        content[offset : offset + 64] = b"\xff" * 64
    path.write_bytes(content)
    store = await SqliteStore.open(path)
    for repair in (False, True):
        try:
            report = await store.examine(repair=repair)
        except StoreError as error:
            assert "is damaged" in str(error)  # noqa: PT017 - either way it is told
        else:
            assert not report.clean
    with contextlib.suppress(StoreError):
        await store.close()


async def test_a_store_belongs_to_its_event_loop(tmp_path: Path) -> None:
    """Used from another loop it says so instead of waiting for ever."""
    store = await SqliteStore.open(tmp_path / "store.db")

    def elsewhere() -> None:
        asyncio.run(store.head())

    with pytest.raises(InvalidInput, match="another event loop"):
        await anyio.to_thread.run_sync(elsewhere)
    await store.close()
    with pytest.raises(InvalidInput, match="was closed"):
        await store.head()


async def test_closing_tidies_up_even_when_it_is_cancelled(tmp_path: Path) -> None:
    """No thread, no descriptor and no log is left behind; nor by an opening that fails."""
    process = psutil.Process()
    await made(tmp_path / "warm.db")
    before = process.num_fds(), threading.active_count()
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.commit(Batch((session(),)))
    task = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await store.close()
    assert {path.name for path in tmp_path.glob("store.db-*")} == {"store.db-wake", "store.db-lock"}
    (tmp_path / "notdb.db").write_bytes(b"no database at all" * 100)
    for _ in range(5):
        with pytest.raises(StoreError):
            await SqliteStore.open(tmp_path / "notdb.db")
    assert (process.num_fds(), threading.active_count()) == before


async def test_a_store_reached_by_a_link_is_one_store(tmp_path: Path) -> None:
    """Its lock and its wake file lie beside the file itself: both names wait for and wake each other."""
    path, link = tmp_path / "data" / "store.db", tmp_path / "link.db"
    path.parent.mkdir()
    await made(path)
    link.symlink_to(path)
    one, other = await SqliteStore.open(path), await SqliteStore.open(link)
    await other.commit(Batch((user(2),)))
    assert len((await one.messages(MessageQuery(S1))).messages) == 2
    await one.close()
    await other.close()

    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "link.db"]
    names = sorted(each.name for each in path.parent.iterdir())
    assert names == ["store.db", "store.db-lock", "store.db-wake"]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (SessionQuery(), "session_updated"),
        (SessionQuery(directory="/work/app"), "session_directory"),
        (SessionQuery(directory="/work/app", project="p"), "session_directory"),
        (SessionQuery(directory="/work/app", cursor="s1.1"), "session_directory"),
        (SessionQuery(project="p"), "session_project"),
        (SessionQuery(agent_runs=True), "session_run"),
        (SessionQuery(slug="calm-otter"), "session_slug"),
        (SessionQuery(parent=S1), "session_parent"),
        (SessionQuery(id_prefix="ses_1"), "sqlite_autoindex_session_1"),
    ],
)
async def test_lists_of_sessions_use_an_index(tmp_path: Path, query: SessionQuery, index: str) -> None:
    """However many sessions there are, a page of them reads about as many rows as it has."""
    path = tmp_path / "store.db"
    await made(path)
    with contextlib.closing(Database(path).connect(readonly=True)) as db:
        plans = _plans(db, lambda: RecordReader(db, lambda _: False).sessions(query))
    assert [plan.split("(")[0] for plan in plans if "SEARCH" in plan or "SCAN" in plan] == [
        f"SEARCH session USING INDEX {index} "
    ]


async def test_the_few_records_of_a_session_are_found_by_their_kind(tmp_path: Path) -> None:
    """Its epochs, its todo list: not by a walk over its messages."""
    path = tmp_path / "store.db"
    await made(path)
    with contextlib.closing(Database(path).connect(readonly=True)) as db:
        plans = _plans(db, lambda: RecordReader(db, lambda _: False).select("epoch", S1, None))
    assert [plan for plan in plans if " r " in plan] == [
        "SEARCH r USING INDEX record_few (session=? AND kind=?)"
    ]


def _plans(db: apsw.Connection, work: Callable[[], object]) -> list[str]:
    """How SQLite goes about the statements that some work executes."""
    asked: list[str] = []

    def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        asked.append(sql)
        return True

    db.exec_trace = trace
    work()
    db.exec_trace = None
    return [
        row[3] for sql in asked for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))
    ]


async def test_a_long_page_is_joined_a_few_pieces_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says the same as its records, messages without parts included."""
    monkeypatch.setattr(reader, "_PIECES", 5)
    store = await SqliteStore.open(tmp_path / "store.db")
    puts = [put for n in range(1, 40, 4) for put in (user(n), text(n + 1, n), text(n + 2, n), user(n + 3))]
    await store.commit(Batch((session(), *puts)))
    page = await same_page(store, MessageQuery(S1))
    await store.close()
    assert len(page.messages) == 20

"""What an examination of a PostgreSQL store says and mends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.schema.session import AgentRun
from holdfast.schema.stored import KINDS
from holdfast.store.batch import Batch
from holdfast.store.postgres.sql import statements
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import MessageQuery
from holdfast.store.report import Finding
from holdfast.testing.store_contract.build import S1, S2, msg, prt, session, text, user
from holdfast.testing.store_contract.world import drain
from tests.store.postgres.server import schema_url

pytestmark = pytest.mark.ci("most of the work is done by a database server")

ORPHAN = (
    "INSERT INTO {s}.record(session, position, kind, mark, seq, xid, born, id, data) "
    "VALUES (999, 1, 1, 0, 1, pg_current_xact_id(), pg_current_xact_id(), 'msg_x', '{}')"
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(schema_url(tmp_path))
    await store.commit(Batch((session(), user(1), text(2, 1), session(S2, parent=S1))))
    yield store
    await store.close()


async def damage(store: PostgresStore, sql: str) -> None:
    async with store._writes.use() as connection:
        await connection.execute(sql.replace("{s}", store.address.schema))


async def test_a_server_without_a_standby_is_told_of(store: PostgresStore) -> None:
    """It is advice and no finding: the store is clean."""
    report = await store.examine()

    assert (report.sessions, report.records, report.findings) == (2, 2, ())
    assert [line.split(" ")[0] for line in report.advice] == ["synchronous_standby_names"]


@pytest.mark.parametrize(
    ("sql", "finding"),
    [
        (
            "UPDATE {s}.record SET parent = 77 WHERE kind = 2",
            Finding("its message is missing", f"part {prt(2)} of {S1}", mended=True, given_up=True),
        ),
        (
            f"UPDATE {{s}}.session SET head = 1 WHERE id = '{S1}'",
            Finding("the head 1 is behind its records", f"session {S1}", mended=True),
        ),
        (
            "UPDATE {s}.record SET position = 90 WHERE kind = 2",
            Finding("its numbers are out of order", f"part {prt(2)} of {S1}"),
        ),
        (
            ORPHAN,
            Finding("its session is missing", "message msg_x", mended=True, given_up=True),
        ),
        (
            f"UPDATE {{s}}.session SET parent = 'ses_gone' WHERE id = '{S2}'",
            Finding("its parent ses_gone is missing", f"session {S2}"),
        ),
    ],
)
async def test_what_is_wrong_is_found_and_mended_when_asked(
    store: PostgresStore, sql: str, finding: Finding
) -> None:
    """Each kind of damage is named once; mending leaves a store that is clean, or says that it is not."""
    await damage(store, sql)

    found = (await store.examine()).findings
    assert [(each.what, each.where, each.mended) for each in found] == [(finding.what, finding.where, False)]
    assert (await store.examine(repair=True)).findings == (finding,)
    assert (await store.examine()).clean is finding.mended


async def kept(store: PostgresStore) -> list[tuple[str, str, str]]:
    """What was set aside: kind, id, content."""
    async with store._writes.use() as connection:
        rows = await connection.fetch(f"SELECT kind, id, data FROM {store.address.schema}.quarantine")
    return [tuple(row) for row in rows]


async def test_a_damaged_message_keeps_its_parts(store: PostgresStore) -> None:
    """They go with their message, and their content stays where a person finds it."""
    await store.commit(Batch((text(3, 1, "a long story"), user(5), text(6, 5))))
    cursor = await store.head()
    await damage(store, f"UPDATE {{s}}.record SET data = '{{{{' WHERE id = '{msg(1)}'")

    (found,) = (await store.examine(repair=True)).findings

    assert (found.where, found.mended, found.given_up) == (f"message {msg(1)} of {S1}", True, True)
    assert await kept(store) == [
        ("message", msg(1), "{{"),
        ("part", prt(2), text(2, 1).data.decode()),
        ("part", prt(3), text(3, 1, "a long story").data.decode()),
    ]
    assert (await store.examine()).findings == ()
    page = await store.messages(MessageQuery(S1))
    assert [each.info.id for each in page.messages] == [msg(5)]
    assert [(each.record.id, each.removed) for each in (await drain(store, cursor)).records] == [
        (msg(1), True)
    ]


@pytest.mark.parametrize("damaged", ["{", "[]", "", '{"title": 7}'])
async def test_a_damaged_session_is_mended(store: PostgresStore, damaged: str) -> None:
    """It becomes what the columns know of it, with all its records; the damaged JSON is set aside."""
    put = session(
        S2, parent=S1, title="kept", path="src", archived=7.5, updated=2000, agentRun={"agent": "explore"}
    )
    await store.commit(Batch((put, user(9, session=S2))))
    cursor = await store.head()
    await damage(store, f"UPDATE {{s}}.session SET data = '{damaged}' WHERE id = '{S2}'")
    assert [each.mended for each in (await store.examine()).findings] == [False]

    (found,) = (await store.examine(repair=True)).findings

    assert (found.where, found.mended, found.given_up) == (f"session {S2}", True, False)
    assert await kept(store) == [("session", S2, damaged)]
    assert (await store.examine()).findings == ()
    stored = await store.get(S2, "session", S2)
    assert stored is not None
    value = stored.value()
    assert (value.title, value.path, value.parent_id, value.directory, value.placement) == (
        "kept",
        "src",
        S1,
        "/work/app",
        "here",
    )
    assert (value.time.updated, value.time.archived, value.agent_run) == (
        2000,
        7.5,
        AgentRun(agent="explore"),
    )
    assert [each.record.id for each in (await drain(store, cursor)).records] == [S2]
    receipt = await store.commit(Batch((user(10, session=S2),)))
    assert receipt.seq > stored.seq


async def test_what_was_replaced_meanwhile_is_not_set_aside(store: PostgresStore) -> None:
    """A runner may write a record anew between the look and the mending: its content wins."""
    sql = statements(store.address.schema)
    async with store._writes.use() as connection:
        for name, values in (
            ("quarantine", (1, 2, 1, S1, list(KINDS), "seen as number 1", None)),
            ("mend_session", (1, 99, "{}", "seen as number 99", None)),
        ):
            assert await connection.fetchval(sql[name], *values) is False

    assert await kept(store) == []
    assert await store.get(S1, "message", msg(1)) is not None
    assert (await store.examine()).findings == ()


async def test_records_of_an_erased_session_are_set_aside_for_good(store: PostgresStore) -> None:
    """A tombstone has no place for them: they leave nothing that would be found again."""
    await store.erase(S1)
    await damage(store, ORPHAN.replace("999", f"(SELECT n FROM {{s}}.session WHERE id = '{S1}')"))

    assert (await store.examine(repair=True)).clean
    assert await kept(store) == [("message", "msg_x", "{}")]
    assert (await store.examine()).findings == ()


async def test_a_store_that_is_written_meanwhile_is_clean(store: PostgresStore, tmp_path: Path) -> None:
    """Records that come after their session was looked at are not ahead of it."""
    writer = await PostgresStore.open(schema_url(tmp_path))

    async def write() -> None:
        for n in range(10, 200):
            await writer.commit(Batch((user(n),)))

    writing = asyncio.create_task(write())
    while not writing.done():
        assert (await store.examine()).findings == ()
        await asyncio.sleep(0)
    await writing
    await writer.close()

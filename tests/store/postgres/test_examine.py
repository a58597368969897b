"""What an examination of a PostgreSQL store says and mends."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.store.batch import Batch
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.report import Finding
from holdfast.testing.store_contract.build import S1, S2, msg, prt, session, text, user
from tests.store.postgres.server import schema_url

pytestmark = pytest.mark.ci

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
            Finding("its message is missing", f"part {prt(2)} of {S1}", mended=True),
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
            Finding("its session is missing", "message msg_x", mended=True),
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


async def test_a_damaged_session_is_named(store: PostgresStore) -> None:
    """Its own JSON cannot be set aside without losing the session, so it is left to a person."""
    await damage(store, f"UPDATE {{s}}.session SET data = '{{{{' WHERE id = '{S2}'")

    (found,) = (await store.examine(repair=True)).findings
    assert (found.where, found.mended) == (f"session {S2}", False)
    assert await store.get(S1, "message", msg(1)) is not None

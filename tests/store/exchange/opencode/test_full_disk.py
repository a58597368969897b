"""An import onto a disk that becomes full says what came over, and goes on from there."""

from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError
from holdfast.store.query import SessionQuery
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.store import SqliteStore
from tests.store.exchange.opencode.world import Db, brought, text

SESSIONS = 6


class Small(Database):
    """A store on a small disk."""

    def connect(self, *, readonly: bool = False) -> apsw.Connection:
        db = super().connect(readonly=readonly)
        db.execute("PRAGMA max_page_count=40").fetchall()
        return db


async def test_what_came_before_the_disk_was_full_is_said(tmp_path: Path) -> None:
    """Not "nothing was written": so many sessions came, and with room the same import brings the rest."""
    db = Db(tmp_path / "data" / "opencode.db")
    for n in range(SESSIONS):
        db.session(id=f"ses_e220ef30affejZ4kkNbvVuwkR{n}")
        db.exchange(session=f"ses_e220ef30affejZ4kkNbvVuwkR{n}", n=10 * n + 1)
        db.part(900 + n, 10 * n + 1, text("long " * 4000), session=f"ses_e220ef30affejZ4kkNbvVuwkR{n}")
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path, database=Small(path))
    with pytest.raises(StoreError) as caught:
        await brought(store, db.path)
    came = len((await store.sessions(SessionQuery())).sessions)
    await store.close()

    assert 0 < came < SESSIONS
    assert str(caught.value) == (
        f"the disk that holds {path} is full, so this change was not written; {came} of {SESSIONS} sessions "
        "had come over whole, and the same import brings the rest"
    )
    store = await SqliteStore.open(path)
    await brought(store, db.path)
    assert len((await store.sessions(SessionQuery())).sessions) == SESSIONS
    await store.close()

"""Pages without Mid-Conversation System Messages, over every store that keeps them."""

from pathlib import Path

import pytest

from holdfast.store.base import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.paging import Hiding
from tests.store.postgres.server import schema_url


class TestSqlite(Hiding):
    """On SQLite."""

    async def open(self, place: Path, clock: FakeClock, host: FakeHost) -> Store:
        from holdfast.store.sqlite.store import SqliteStore

        return await SqliteStore.open(place / "store.db", clock=clock, host=host)


class TestFiles(Hiding):
    """On a tree of files."""

    async def open(self, place: Path, clock: FakeClock, host: FakeHost) -> Store:
        from holdfast.store.files.store import FilesStore

        return await FilesStore.open(place / "storage", clock=clock, host=host)


@pytest.mark.ci
class TestPostgres(Hiding):
    """On PostgreSQL."""

    async def open(self, place: Path, clock: FakeClock, host: FakeHost) -> Store:
        from holdfast.store.postgres.store import PostgresStore

        return await PostgresStore.open(schema_url(place), clock=clock, host=host)

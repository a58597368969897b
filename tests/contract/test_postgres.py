"""The store contract over PostgreSQL: one server for the run, a schema for each store."""

from pathlib import Path

import pytest

from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract import DamageContract, StoreContract, World
from tests.store.postgres.server import schema_url

pytestmark = pytest.mark.ci("most of the work is done by a database server")


async def opened(place: Path, clock: FakeClock, host: FakeHost) -> Store:
    from holdfast.store.postgres.store import PostgresStore

    return await PostgresStore.open(schema_url(place), clock=clock, host=host)


class TestPostgres(StoreContract):
    """Every promise, on PostgreSQL."""

    open = staticmethod(opened)


class TestDamagedPostgres(DamageContract):
    """Damage under PostgreSQL."""

    open = staticmethod(opened)

    async def damage(self, world: World, put: Put) -> None:
        import asyncpg

        from holdfast.store.postgres.address import parse_url

        address = parse_url(schema_url(world.place))
        connection = await asyncpg.connect(address.dsn)
        table = "session" if put.kind == "session" else "record"
        await connection.execute(f"UPDATE {address.schema}.{table} SET data = '{{' WHERE id = $1", put.id)
        await connection.close()

    def ahead(self, cursor: str) -> str:
        incarnation, snapshot = cursor.split("-")
        xmin, xmax, _ = (int(each or "0", 16) for each in snapshot.split("."))
        return f"{incarnation}-{xmin + 1000:x}.{xmax + 1000:x}."

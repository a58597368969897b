"""The store contract over SQLite."""

from pathlib import Path

from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract import DamageContract, StoreContract, World


async def opened(place: Path, clock: FakeClock, host: FakeHost) -> Store:
    from holdfast.store.sqlite.store import SqliteStore

    return await SqliteStore.open(place / "store.db", clock=clock, host=host)


class TestSqlite(StoreContract):
    """Every promise, on SQLite."""

    open = staticmethod(opened)


class TestDamagedSqlite(DamageContract):
    """Damage under SQLite."""

    open = staticmethod(opened)

    async def damage(self, world: World, put: Put) -> None:
        import apsw

        await world.close()
        db = apsw.Connection(str(world.place / "store.db"))
        db.execute("UPDATE record SET data='{' WHERE id=?", (put.id,))
        db.close()

    def ahead(self, cursor: str) -> str:
        incarnation, number = cursor.split(".")
        return f"{incarnation}.{int(number, 16) + 1000:x}"

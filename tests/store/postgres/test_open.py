"""Opening a store: its URL, what is there already, and what an error may tell."""

from pathlib import Path

import anyio
import asyncpg
import pytest

from holdfast.errors import InvalidInput, Refused, StoreBusy, StoreError, StoreMissing, StoreTooNew
from holdfast.store.base import FORMAT
from holdfast.store.batch import Batch
from holdfast.store.postgres.address import parse_url
from holdfast.store.postgres.sql import PREFIX
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import SessionQuery
from holdfast.testing.store_contract.build import S1, session
from tests.store.postgres.server import schema_url, start

pytestmark = pytest.mark.ci("most of the work is done by a database server")

SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://localhost/x",
        "sqlite:///x",
        "postgresql://localhost/x?schema=a;drop",
        "postgresql://localhost/x?schema=Capital",
        "postgresql://localhost/x?schema=",
        "postgresql://localhost/x?" + "a" * 10,
        f"postgresql://me:{SECRET}@[::1/x",
    ],
)
def test_a_url_that_is_none_is_invalid(url: str) -> None:
    """Another scheme, a schema that would need quotes, an address that cannot be read."""
    with pytest.raises(InvalidInput) as caught:
        parse_url(url)

    assert SECRET not in str(caught.value)


def test_an_address_shows_no_secret() -> None:
    """User and password go to the driver and nowhere else."""
    address = parse_url(f"postgresql://me:{SECRET}@db.example:5433/work?sslmode=require&schema=mine")

    assert address.dsn == f"postgresql://me:{SECRET}@db.example:5433/work?sslmode=require"
    assert (address.schema, address.shown) == ("mine", "postgresql://db.example:5433/work?schema=mine")
    assert SECRET not in repr(address) + str(address)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        (f"postgresql://me:{SECRET}@127.0.0.1:1/x", StoreBusy),
        (f"postgresql://me:{SECRET}@127.0.0.1:notaport/x", InvalidInput),
        (f"postgresql://me:{SECRET}@/nosuchdatabase?host=%s", StoreError),
        (f"postgresql://nobody:{SECRET}@/postgres?host=%s", StoreError),
        (f"postgresql://postgres:{SECRET}@/postgres?host=%s&sslmode=nonsense", InvalidInput),
    ],
)
async def test_a_database_that_cannot_be_had_tells_no_secret(url: str, error: type[Exception]) -> None:
    """Nobody there, no such database, no such user, an unknown setting: the password is never told."""
    host = start().partition("host=")[2]
    with pytest.raises(error) as caught:
        await PostgresStore.open(url.replace("%s", host))

    link: BaseException | None = caught.value
    while link is not None:
        assert SECRET not in str(link) + repr(link)
        link = link.__cause__


async def test_an_absent_store_is_not_made_by_chance(tmp_path: Path) -> None:
    """Without `create` an empty place is an error, and stays empty."""
    for _ in range(2):
        with pytest.raises(StoreMissing):
            await PostgresStore.open(schema_url(tmp_path), create=False)


async def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    """A store of a later version is left alone."""
    url = schema_url(tmp_path)
    await (await PostgresStore.open(url)).close()
    address = parse_url(url)
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(
        f"UPDATE {address.schema}.store SET value = $1 WHERE key = 'format'", str(FORMAT + 1)
    )
    await connection.close()

    with pytest.raises(StoreTooNew, match=f"format {FORMAT + 1}"):
        await PostgresStore.open(url)


async def test_many_open_a_new_store_at_once(tmp_path: Path) -> None:
    """It is made once; everybody gets it."""
    stores: list[PostgresStore] = []

    async def open_one() -> None:
        stores.append(await PostgresStore.open(schema_url(tmp_path)))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(open_one)
    await stores[0].commit(Batch((session(),)))

    for store in stores:
        assert [each.id for each in (await store.sessions(SessionQuery())).sessions] == [S1]
        await store.close()


async def test_functions_of_an_earlier_build_are_replaced(tmp_path: Path) -> None:
    """Opening brings the store's functions up to this build's, without touching its records."""
    url = schema_url(tmp_path)
    store = await PostgresStore.open(url)
    await store.commit(Batch((session(),)))
    await store.close()
    address = parse_url(url)
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(f"DROP FUNCTION {address.schema}.{PREFIX}history()")
    await connection.execute(f"UPDATE {address.schema}.store SET value = 'old' WHERE key LIKE 'functions%'")
    await connection.close()

    store = await PostgresStore.open(url)
    assert await store.head()
    assert (await store.session(S1)) is not None
    await store.close()


async def test_a_backup_is_the_servers_business(tmp_path: Path) -> None:
    """The refusal names the tool and the schema."""
    store = await PostgresStore.open(schema_url(tmp_path))
    with pytest.raises(Refused, match=f"pg_dump --schema={store.address.schema}"):
        await store.backup("x")
    await store.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Every use after close is the caller's mistake, and closing twice is none."""
    store = await PostgresStore.open(schema_url(tmp_path))
    await store.close()
    await store.close()

    for use in (
        lambda: store.commit(Batch((session(),))),
        lambda: store.session(S1),
        lambda: store.renew("o1"),
    ):
        with pytest.raises(InvalidInput, match="closed"):
            await use()

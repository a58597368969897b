"""Opening a store's schema: made under a lock, checked against its format, its functions kept up to date."""

import hashlib
import secrets

from holdfast.errors import StoreError, StoreMissing, StoreTooNew
from holdfast.store.base import FORMAT
from holdfast.store.postgres.address import Address
from holdfast.store.postgres.connections import Connection
from holdfast.store.postgres.sql import FUNCTIONS, script

FUNCTION_SCRIPTS = ("indexes", "steps", "commit", "owners")


async def prepare(connection: Connection, address: Address, *, create: bool) -> str:
    """Make sure that the schema is there and of our format; answers the store's own incarnation."""
    functions = "\n".join(script(name, address.schema) for name in FUNCTION_SCRIPTS)
    mark = hashlib.sha256(functions.encode()).hexdigest()[:16]
    key = f"functions_{FUNCTIONS}"
    await _check_encoding(connection, address)
    known = await _read(connection, address)
    if known is None and not create:
        raise StoreMissing(f"there is no Holdfast store at {address.shown}")
    if known is not None:
        _check_format(known, address)
    if known is None or known.get(key) != mark:
        async with connection.transaction():
            await _lock(connection, address)
            known = await _read(connection, address)
            if known is None:
                await _make(connection, address)
            # After the tables, since functions are checked against them.
            await connection.execute(functions)
            await connection.execute(
                f"INSERT INTO {address.schema}.store VALUES ($1, $2) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                key,
                mark,
            )
            known = await _read(connection, address) or {}
            _check_format(known, address)
    return known["incarnation"]


async def is_restored(connection: Connection, address: Address) -> bool:
    """Whether rows were stamped by transactions that this server has not begun: a dump of another one.

    The feed would not see them until the server has come that far, and would not see changes of them then.
    """
    return bool(await connection.fetchval(script("restored", address.schema)))


async def stamp_again(connection: Connection, address: Address) -> None:
    """Let the restored rows be written now, in an incarnation of their own: every cursor ends in a resync."""
    async with connection.transaction():
        await _lock(connection, address)
        await connection.execute("SET LOCAL statement_timeout = 0")
        if await is_restored(connection, address):  # Else another process was first.
            await connection.execute(script("stamp", address.schema))
            await connection.execute(
                f"UPDATE {address.schema}.store SET value = $1 WHERE key = 'incarnation'",
                secrets.token_hex(8),
            )


async def _lock(connection: Connection, address: Address) -> None:
    key = f"holdfast schema {address.schema}"
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", key)


async def _check_encoding(connection: Connection, address: Address) -> None:
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{address.shown} keeps text as {encoding}, which cannot hold every character; "
            "create a database with ENCODING 'UTF8'"
        )


def _check_format(known: dict[str, str], address: Address) -> None:
    """Refuse a store of a later version, and one whose own table was tampered with."""
    missing = [name for name in ("format", "incarnation", "horizon") if name not in known]
    numbers = [known[name] for name in ("format", "horizon") if name not in missing]
    if missing or not all(each.isdecimal() for each in numbers):
        raise StoreError(
            f"{address.shown}: its table `store` is damaged ({', '.join(missing) or 'a number is none'}); "
            "restore that table from a backup"
        )
    format = int(known["format"])
    if format > FORMAT:
        raise StoreTooNew(
            f"{address.shown} has format {format}, this version reads up to {FORMAT}; upgrade Holdfast"
        )


async def _read(connection: Connection, address: Address) -> dict[str, str] | None:
    # Asked of the catalogue's tables: a lookup by name may remember that there was none before we waited.
    found = await connection.fetchval(
        "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relname = 'store'",
        address.schema,
    )
    if found is None:
        return None
    rows = await connection.fetch(f"SELECT key, value FROM {address.schema}.store")
    return dict(rows)


async def _make(connection: Connection, address: Address) -> None:
    await connection.execute(script("tables", address.schema))
    await connection.executemany(
        f"INSERT INTO {address.schema}.store VALUES ($1, $2)",
        [("format", str(FORMAT)), ("incarnation", secrets.token_hex(8)), ("horizon", "0")],
    )

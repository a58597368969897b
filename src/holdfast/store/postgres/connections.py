"""Connections to the database: a few for commits and reads, one kept for renewals and wakes.

No more than that: a thousand processes share one server. Each use has a bound; a connection that broke is
replaced at its next use.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from holdfast.errors import HoldfastError, InvalidInput, StoreBusy
from holdfast.store.postgres.address import Address
from holdfast.store.postgres.failure import AGAIN, ATTEMPTS, harmless, translated, unsent

CONNECT_S = 10.0
WAIT_S = 20.0
STATEMENT_MS = 30_000
LOCK_MS = 10_000
USE_S = 35.0
"""Longer than the server's own bounds: only the wait for a standby, or for a dead network, comes this far."""
PATIENT_S = 3600.0

# The driver has no types.
Connection = Any
Row = Any


def _settings(*, reading: bool) -> dict[str, str]:
    settings = {
        "application_name": "holdfast",
        "statement_timeout": str(STATEMENT_MS),
        "lock_timeout": str(LOCK_MS),
        "idle_in_transaction_session_timeout": str(STATEMENT_MS),
        "jit": "off",
    }
    # A commit's statements are the same small steps each time, and planning them again is a third of its
    # cost. What a page of the feed costs depends on the age of the cursor: a plan made for any cursor would
    # walk whole tables.
    settings["plan_cache_mode"] = "force_custom_plan" if reading else "force_generic_plan"
    return settings


class NoRoom(StoreBusy):
    """The server has as many connections as it takes."""


async def connect(address: Address, *, reading: bool = False) -> Connection:
    """A new connection; errors are ours."""
    try:
        return await asyncpg.connect(
            address.dsn,
            timeout=CONNECT_S,
            server_settings=_settings(reading=reading),
        )
    except asyncpg.TooManyConnectionsError as error:
        raise NoRoom(str(translated(error, address.shown))) from None
    except (ValueError, asyncpg.InternalClientError) as error:
        if isinstance(error, asyncpg.InternalClientError) and unsent(error):
            raise translated(error, address.shown) from None
        # The driver quotes what it could not read, and that may be the password.
        raise InvalidInput(f"the driver cannot read the database URL of {address.shown}") from None
    except Exception as error:  # noqa: BLE001 - see above; and no error of the driver goes on unnamed
        raise translated(error, address.shown) from None


class Connections:
    """A few connections that are used in turn."""

    def __init__(self, address: Address, size: int, *, reading: bool) -> None:
        self._address = address
        self._reading = reading
        self._room = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._out = 0
        self._given = asyncio.Event()
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def use(self, *, patient: bool = False) -> AsyncIterator[Connection]:
        """One connection for one use, which ends within a minute unless `patient` (a walk over everything).

        Errors of the driver leave as errors of ours. A connection that one may have harmed is not used again.
        """
        if self._closed:
            raise InvalidInput(f"the store {self._address.shown} was closed")
        if self._room.locked():
            await self._wait()
        else:
            await self._room.acquire()
        connection = limit = None
        sound = False
        try:
            connection = await self._take()
            self._out += 1
            # This ends a wait on a dead network (the driver's own time-outs cost a twentieth of a commit);
            # the server's statement time-out ends everything else.
            bound_s = PATIENT_S if patient else USE_S
            limit = asyncio.get_running_loop().call_later(bound_s, self._give_up, connection)
            yield connection
            sound = True
        except BaseException as error:
            sound = harmless(error)
            if isinstance(error, Exception) and not isinstance(error, HoldfastError):
                raise translated(error, self._address.shown) from error
            raise
        finally:
            if limit is not None:
                limit.cancel()
            self._room.release()
            if connection is not None:
                self._give(connection, sound=sound)

    async def call(self, statement: str, *values: object) -> object:
        """One value; asked a few times when the server undid the transaction for another one's sake."""
        for attempt in range(1, ATTEMPTS + 1):
            async with self.use() as connection:
                try:
                    return await connection.fetchval(statement, *values)
                except AGAIN:
                    if attempt == ATTEMPTS:
                        raise
        raise StoreBusy(f"{self._address.shown} undid it {ATTEMPTS} times for others; try again")

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._room.acquire()
        except TimeoutError:
            raise StoreBusy(
                f"{self._address.shown}: all connections were in use for {WAIT_S:.0f} s"
            ) from None

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        try:
            return await connect(self._address, reading=self._reading)
        except NoRoom:
            if not self._out:
                raise
        return await self._given_back()

    async def _given_back(self) -> Connection:
        """One of ours that is in use now: the server has no room for another."""
        try:
            async with asyncio.timeout(WAIT_S):
                while True:
                    while self._idle:
                        connection = self._idle.pop()
                        if not connection.is_closed():
                            return connection
                    if not self._out:
                        return await connect(self._address, reading=self._reading)
                    self._given.clear()
                    await self._given.wait()
        except TimeoutError:
            raise StoreBusy(f"{self._address.shown} has no room for another connection") from None

    def _give_up(self, connection: Connection) -> None:
        """End a use that takes too long. The server is asked to stop too, or it keeps its locks."""
        pid = connection.get_server_pid()
        connection.terminate()
        task = asyncio.get_running_loop().create_task(self._cancel(pid))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _cancel(self, pid: int) -> None:
        with contextlib.suppress(Exception):  # It was worth a try.
            connection = await connect(self._address)
            try:
                await connection.execute(
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
                    "WHERE pid = $1 AND application_name = 'holdfast' AND usename = current_user",
                    pid,
                    timeout=CONNECT_S,
                )
            finally:
                await hang_up(connection)

    def _give(self, connection: Connection, *, sound: bool) -> None:
        self._out -= 1
        self._given.set()
        if not sound or self._closed or connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)

    async def close(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(hang_up, idle), *self._tasks)


async def hang_up(connection: Connection) -> None:
    """Close a connection, politely if it answers."""
    try:
        await connection.close(timeout=2)
    except Exception:  # noqa: BLE001 - it goes in any case
        connection.terminate()

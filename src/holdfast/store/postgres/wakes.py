"""Learns of commits: this process's own at once, those of others by NOTIFY, with a look a second behind both.

NOTIFY is sent after the commit and not in it (notifying commits share one lock of the server), and at most
once in 20 ms. It may be lost: a wait ends after a second in any case.
"""

import asyncio
import contextlib
import random
import secrets

import asyncpg

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.store.postgres.address import Address
from holdfast.store.postgres.connections import Connection, connect, hang_up
from holdfast.store.postgres.failure import harmless, translated
from holdfast.store.watch import StoreWatch

POLL_S = 1.0
GAP_S = 0.02
AGAIN_S = 0.5
AGAIN_S_MAX = 5.0
CALL_S = 10.0


class Wakes:
    """The watches of this process, and the direct connection that wakes them."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._channel = f"holdfast_{address.schema}"
        self._mark = secrets.token_hex(8)
        self._watches: set[StoreWatch] = set()
        self._news = asyncio.Event()
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    async def open(self) -> None:
        """Listen, and begin to notify."""
        try:
            await self._direct()
        except Exception as error:
            raise translated(error, self._address.shown) from error
        self._tasks = [asyncio.create_task(self._notify()), asyncio.create_task(self._listen())]

    def join(self) -> StoreWatch:
        """Begin to wait."""
        # Random, to spread the load.
        watch = StoreWatch(self.leave, lambda: POLL_S * random.uniform(0.8, 1.0))  # noqa: S311
        self._watches.add(watch)
        return watch

    def leave(self, watch: StoreWatch) -> None:
        """Wait no more."""
        self._watches.discard(watch)

    def written(self) -> None:
        """After a commit of ours: wake our own at once, the others soon."""
        self._wake()
        self._news.set()

    async def call(self, statement: str, *values: object) -> object:
        """Ask one value on the direct connection, which no commit or read can hold up."""
        if self._closed:
            raise InvalidInput(f"the store {self._address.shown} was closed")
        async with self._turn:
            connection = None
            try:
                connection = await self._direct()
                return await connection.fetchval(statement, *values, timeout=CALL_S)
            except BaseException as error:
                if connection is not None and not harmless(error):
                    connection.terminate()
                if isinstance(error, Exception) and not isinstance(error, HoldfastError):
                    raise translated(error, self._address.shown) from error
                raise

    async def close(self) -> None:
        """Listen and notify no more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._connection is not None:
            await hang_up(self._connection)
            self._connection = None

    def _wake(self) -> None:
        for watch in self._watches:
            watch.event.set()

    def _on_notify(self, _connection: object, _pid: int, _channel: str, mark: object) -> None:
        if mark != self._mark:
            self._wake()

    async def _direct(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            connection = await connect(self._address)
            try:
                # A standby notifies of nothing: there the look once a second is all.
                with contextlib.suppress(asyncpg.ReadOnlySQLTransactionError):
                    async with asyncio.timeout(CALL_S):
                        await connection.add_listener(self._channel, self._on_notify)
            except BaseException:
                connection.terminate()
                raise
            self._connection = connection
            self._wake()  # For notices that came while the connection was away.
        return self._connection

    async def _notify(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            with contextlib.suppress(HoldfastError):  # A lost wake is made up for by the look a second.
                await self.call("SELECT pg_notify($1, $2)", self._channel, self._mark)
            await asyncio.sleep(GAP_S)

    async def _listen(self) -> None:
        """Replace the connection when it breaks, with growing pauses."""
        pause_s = AGAIN_S
        while True:
            await asyncio.sleep(pause_s)
            try:
                async with self._turn:
                    await self._direct()
                pause_s = AGAIN_S
            except Exception:  # noqa: BLE001 - whatever it is, the next try may succeed
                pause_s = min(pause_s * 2, AGAIN_S_MAX)

"""A proxy in front of a PostgreSQL server that cuts connections at random moments."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

CHUNK = 65_536


class Proxy:
    """Passes on what comes, until a connection's time is over; each has `mean_s` on average."""

    def __init__(self, socket: str, chance: random.Random, mean_s: float) -> None:
        self._socket = socket
        self._chance = chance
        self._mean_s = mean_s
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut = 0
        self.calm = True
        """Whether it cuts nothing, now."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until one side closes it or it is cut: at any byte, both ways."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        to_reader, to_writer = await asyncio.open_unix_connection(self._socket)
        ways = [
            asyncio.ensure_future(_pass_on(reader, to_writer)),
            asyncio.ensure_future(_pass_on(to_reader, writer)),
        ]
        try:
            while True:
                left_s = self._chance.expovariate(1 / self._mean_s)
                done, _ = await asyncio.wait(ways, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if done or not self.calm:
                    break
            self.cut += not done
        except asyncio.CancelledError:
            return  # The proxy has ended.
        finally:
            for way in ways:
                way.cancel()
            for each in (writer, to_writer):
                each.transport.abort()

    async def end(self) -> None:
        """Cut what is left."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def proxied(url: str, chance: random.Random, *, mean_s: float) -> AsyncIterator[tuple[str, Proxy]]:
    """The URL of a server on a socket, through a proxy."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    proxy = Proxy(f"{query['host'][0]}/.s.PGSQL.5432", chance, mean_s)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user = parts.username or "postgres"
    try:
        yield f"postgresql://{user}@127.0.0.1:{port}{parts.path}?schema={query['schema'][0]}", proxy
    finally:
        server.close()
        await proxy.end()

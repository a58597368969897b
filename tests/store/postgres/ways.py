"""A way to the server that a test can spoil: held back, cut, refused, or frozen."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import parse_qs, urlsplit

from tests.store.postgres.server import start


class Way:
    """A port on loopback whose connections lead to the server."""

    def __init__(self) -> None:
        self.refuses = False
        self.keeps_end = False
        """The end of a connection does not come through; what was said before it does."""
        self.loses = 0
        """So many answers to commits are lost, with their connections."""
        self.port = 0
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def url(self, schema_url: str) -> str:
        """The same store through this way."""
        schema = schema_url.rpartition("schema=")[2]
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?schema={schema}&sslmode=disable"

    def cut(self) -> None:
        """End every connection."""
        for pair in self._pairs:
            for writer in pair:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.close()
            return
        there, to_there = await asyncio.open_unix_connection(_socket())
        pair = writer, to_there
        self._pairs.add(pair)
        state = {"commit": False}
        for source, target, outward in ((reader, to_there, True), (there, writer, False)):
            task = asyncio.create_task(self._pass_on(source, target, state, outward=outward))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        state: dict[str, bool],
        *,
        outward: bool,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if outward:
                    state["commit"] = b"commit_one" in data or state["commit"]
                elif self.loses and state["commit"] and data.startswith(b"2"):
                    self.loses -= 1
                    self.cut()
                    return
                writer.write(data)
        if outward or not self.keeps_end:
            writer.close()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def way() -> AsyncIterator[Way]:
    """A way that is closed with the test."""
    async with Way() as made:
        yield made


def _socket() -> str:
    return f"{parse_qs(urlsplit(start()).query)['host'][0]}/.s.PGSQL.5432"

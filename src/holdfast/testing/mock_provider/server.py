"""The mock's HTTP: a plain HTTP/1.1 server on loopback, on a port that the system chooses.

What must stay true: leaving the `async with` ends every connection, also one that stalls.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Self

import msgspec

from holdfast.testing.mock_provider import formats
from holdfast.testing.mock_provider.formats import Format
from holdfast.testing.mock_provider.script import Misbehaviour, Raw, Reply, Trouble, Turn

_PHRASES = {200: "OK", 304: "Not Modified"}
_STATUS: dict[Misbehaviour, int] = {
    "rate-limit": 429,
    "server-error": 500,
    "overloaded": 503,
    "overflow": 400,
    "auth": 401,
}
_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
_JSON = {"content-type": "application/json"}
_PAGE = b"<!doctype html><html><head><title>Welcome</title></head><body>Please sign in.</body></html>"


class Received(msgspec.Struct, frozen=True):
    """A received request. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def model(self) -> str:
        """The model that the body names; some wires name it in the path."""
        return str(self.json.get("model", "mock")) if self.body else "mock"


class MockProvider:
    """The server. `play` gives it its turns; `requests` has what came."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.unexpected: list[Received] = []
        self.stalled = asyncio.Event()
        """Set when the server has fallen silent on purpose."""
        self.left = asyncio.Event()
        """Set when a client has closed its connection before the answer was over."""
        self._released = asyncio.Event()
        self._turns: deque[Turn] = deque()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        """How many were opened."""

    @property
    def url(self) -> str:
        assert self._server is not None, "the mock provider is not open"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def unplayed(self) -> tuple[Turn, ...]:
        return tuple(self._turns)

    def play(self, *turns: Turn) -> None:
        """Answer the next requests with these turns."""
        self._turns.extend(turns)

    def release(self) -> None:
        """End every silence."""
        self._released.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (received := await _receive(reader)) is not None:
                self.requests.append(received)
                if not await self._answer(received, reader, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()  # The task ends either way: the client is gone, or the mock is being closed.
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(
        self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Play the next turn; whether the connection can be used again."""
        wire = formats.of_path(received.path)
        turn = self._turns.popleft() if self._turns else None
        if turn is None or (wire is None and not isinstance(turn, Raw)):
            self.unexpected.append(received)
            turn = Raw((b'{"error":{"message":"the script has no turn for this request"}}',), 500, _JSON)
        if isinstance(turn, Raw):
            await _respond(writer, turn.chunks, turn.status, turn.headers)
            return True
        assert wire is not None
        if isinstance(turn, Reply):
            await _respond(writer, wire.frames(turn, received.model), pace_ms=turn.pace_ms)
            return True
        if turn.kind in {"stall", "no-answer"}:
            if turn.kind == "stall":
                await _respond(writer, wire.frames(turn.reply, received.model)[: turn.after], end=False)
            await self._silence(reader)
            return False
        return await _misbehave(turn, wire, received, writer)

    async def _silence(self, reader: asyncio.StreamReader) -> None:
        """Send nothing until released, or until the client leaves."""
        self.stalled.set()
        gone = asyncio.ensure_future(reader.read(1))
        released = asyncio.ensure_future(self._released.wait())
        try:
            await asyncio.wait({gone, released}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                self.left.set()
        finally:
            gone.cancel()
            released.cancel()


async def _misbehave(turn: Trouble, wire: Format, received: Received, writer: asyncio.StreamWriter) -> bool:
    """Everything bad that needs no waiting; whether the connection can be used again."""
    begun = wire.frames(turn.reply, received.model)[: turn.after]
    match turn.kind:
        case "rate-limit" | "server-error" | "overloaded" | "overflow" | "auth":
            headers = {**_JSON, **({"retry-after": turn.retry_after} if turn.retry_after else {})}
            body = wire.error(turn.kind, _complaint(turn.kind, received))
            await _respond(writer, [body], _STATUS[turn.kind], headers)
        case "json-error":
            await _respond(writer, [wire.error("server-error", "Something broke.")], headers=_JSON)
        case "html":
            await _respond(writer, [_PAGE], headers={"content-type": "text/html"})
        case "empty":
            await _respond(writer, [])
        case "no-finish":
            await _respond(writer, wire.unfinished(turn.reply, received.model))
        case "malformed":
            await _respond(writer, [*begun, b'data: {"type": "content_block_delta", nonsense\n\n'])
        case "error-frame":
            await _respond(writer, [*begun, wire.error_frame("Overloaded, please wait.")])
        case "cut":
            await _respond(writer, begun, end=False)
            return False
        case _:
            raise AssertionError(f"{turn.kind} is played elsewhere")
    return True


def _complaint(kind: Misbehaviour, received: Received) -> str:
    """A refusal repeats the key, as some servers do."""
    if kind == "auth":
        names = ("x-api-key", "authorization", "x-goog-api-key")
        key = next((received.headers[name] for name in names if name in received.headers), "")
        return f"Incorrect API key provided: {key}"
    return f"The mock provider was told to fail: {kind}"


async def _receive(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    try:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None  # The client died in the middle of its request.
    return Received(method, path, headers, body)


async def _respond(
    writer: asyncio.StreamWriter,
    chunks: list[bytes] | tuple[bytes, ...],
    status: int = 200,
    headers: dict[str, str] = _STREAM,
    *,
    pace_ms: int = 0,
    end: bool = True,
) -> None:
    """Send a response in HTTP chunks, one each, so that a client sees the frames as they were written."""
    bodiless = status == 304
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Status')}"]
    lines += [] if bodiless else ["transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    for chunk in chunks:
        if pace_ms:
            await asyncio.sleep(pace_ms / 1000)
        if chunk:
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        await writer.drain()
    if end and not bodiless:
        writer.write(b"0\r\n\r\n")
    await writer.drain()

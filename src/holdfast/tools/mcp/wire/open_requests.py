"""Counts what a server asks of this process and has no answer to yet.

The package starts a task for each request, and an answer waits until the server reads it: one that asks and
never reads would fill the memory.
"""

from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

REQUESTS_MAX: Final = 1_000
TOO_MANY: Final = "it asks for more than can be answered"


class OpenRequests:
    """The requests of one connection. `broke` gets why it ends."""

    def __init__(self, broke: Callable[[str], None]) -> None:
        self._broke = broke
        self._open: Counter[Any] = Counter()

    def streams(self, read: Any, write: Any) -> "tuple[_Read, _Write]":
        """Both directions of the connection, counted."""
        return _Read(read, self), _Write(write, self)

    def asked(self, message: object) -> None:
        """This has come; `EndOfStream` where it is too much."""
        match message:
            case JSONRPCRequest(id=id):
                self._open[id] += 1
                if self._open.total() > REQUESTS_MAX:
                    self._broke(TOO_MANY)
                    raise anyio.EndOfStream
            case JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                self._settle(params.get("requestId"))
            case _:
                pass

    def answered(self, message: object) -> None:
        """This was sent."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._settle(message.id)

    def _settle(self, id: object) -> None:
        if isinstance(id, str | int) and self._open[id] > 1:
            self._open[id] -= 1
        elif isinstance(id, str | int):
            del self._open[id]


class _Stream:
    """A stream of the package, with its closing."""

    def __init__(self, inner: Any, requests: OpenRequests) -> None:
        self._inner = inner
        self._requests = requests

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Read(_Stream):
    @property
    def last_context(self) -> Any:
        """The context of the sender; the package asks for it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        item: SessionMessage | Exception = await self._inner.receive()
        if isinstance(item, SessionMessage):
            self._requests.asked(item.message)
        return item

    def __aiter__(self) -> "_Read":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Write(_Stream):
    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        self._requests.answered(item.message)

"""The connection to a remote server: streamable HTTP, or SSE for a server that knows only that.

The address is the user's own setting, so it may lead anywhere, this machine included. What must stay true: no
answer is read without a bound; what stays on this machine goes through no proxy.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from holdfast.errors import ContextError
from holdfast.net import trusted
from holdfast.net.stream import CONNECT_TIMEOUT_S, LOOPBACK, USER_AGENT, WRITE_TIMEOUT_S, silence
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.wire.link import Streams
from holdfast.tools.mcp.wire.message_lines import MESSAGE_BYTES_MAX
from holdfast.tools.mcp.wire.value_count import VALUES_MAX, ValueCount

_UNAUTHORIZED: Final = 401
_EVENTS: Final = "text/event-stream"


class Traffic:
    """What was seen of a server's answers at its own address."""

    def __init__(self, server: Server) -> None:
        self._url = httpx2.URL(server.entry.url or "")
        self.unauthorized = False
        self.status: int | None = None

    async def look(self, response: httpx2.Response) -> None:
        """Note how an answer begins, and bound what follows."""
        if response.request.url == self._url:  # A token is renewed elsewhere.
            self.status = response.status_code
            self.unauthorized = response.status_code == _UNAUTHORIZED
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.StreamError("the server compresses its answers, which was not asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        has_events = response.headers.get("content-type", "").lower().startswith(_EVENTS)
        response.stream = _Bounded(response.stream, MESSAGE_BYTES_MAX if not has_events else math.inf)


class _Bounded(httpx2.AsyncByteStream):
    """A body of so many bytes at most; the package bounds each event of a stream that has no end."""

    def __init__(self, inner: httpx2.AsyncByteStream, bytes_max: float) -> None:
        self._inner = inner
        self._bytes_max = bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, count = 0, ValueCount()
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._bytes_max:
                raise httpx2.StreamError(f"the answer has more than {MESSAGE_BYTES_MAX >> 20} MiB")
            head, event_end, rest = chunk.rpartition(b"\n\n")
            if event_end and self._bytes_max == math.inf:
                count.take(head)
                _checked(count)
                count = ValueCount()
                count.take(rest)
            else:
                count.take(chunk)
            _checked(count)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _checked(count: ValueCount) -> None:
    if count.too_many:
        raise httpx2.StreamError(f"the answer has more than {VALUES_MAX:,} values")


def client(server: Server, traffic: Traffic, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """The HTTP client for one server. Reading has no bound of its own: each request has one."""
    silence()
    return httpx2.AsyncClient(
        verify=trusted.tls(),
        headers={"accept-encoding": "identity", "user-agent": USER_AGENT, **(server.entry.headers or {})},
        auth=auth,
        timeout=httpx2.Timeout(CONNECT_TIMEOUT_S, read=None, write=WRITE_TIMEOUT_S),
        event_hooks={"response": [traffic.look]},
        mounts={f"all://{host}": None for host in LOOPBACK},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )


@asynccontextmanager
async def streamable(
    server: Server, traffic: Traffic, auth: httpx2.Auth | None = None
) -> AsyncGenerator[Streams, None]:
    """The streams of messages over streamable HTTP."""
    async with (
        client(server, traffic, auth) as http,
        streamable_http_client(
            _url(server), http_client=http, max_sse_event_size=MESSAGE_BYTES_MAX
        ) as streams,
    ):
        yield streams


@asynccontextmanager
async def events(
    server: Server, traffic: Traffic, auth: httpx2.Auth | None = None
) -> AsyncGenerator[Streams, None]:
    """The streams of messages over SSE and posts beside it."""

    def made(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return client(server, traffic, auth)

    async with sse_client(_url(server), httpx_client_factory=made, auth=auth) as streams:
        yield streams


def _url(server: Server) -> str:
    url = server.entry.url or ""
    if not url.startswith(("https://", "http://")):
        raise ContextError("its address is none of http or https")
    return url

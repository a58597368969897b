"""The port that an adapter fills. An adapter is two pure things: a request encoded, and a decoder of events.

It alone knows its wire's names. It does no I/O: `provider/wire/stream.py` sends the bytes, watches the clock
and feeds the decoder, for all wires alike.
"""

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from holdfast.net.event_stream import ServerEvent
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is reached and how it knows us.

    Neither `key` nor what an address may hold of a secret (a password, a query) appears in a repr.
    """

    base_url: str
    key: str | None = None
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    header_timeout_ms: int | None = 300_000
    stall_timeout_ms: int | None = 300_000
    total_timeout_ms: int | None = 1_800_000

    def __repr__(self) -> str:
        return f"Endpoint({_shown(self.base_url)!r}, key={'set' if self.key else None})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("base_url", _shown(self.base_url)), ("key", "set" if self.key else None)]


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What goes over HTTP: always a POST."""

    url: str
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"HttpRequest({_shown(self.url)!r}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("url", _shown(self.url)), ("bytes", len(self.body))]


def _shown(url: str) -> str:
    """An address without name, password and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "…"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


class Decoder(Protocol):
    """Reads one response, event by event."""

    def feed(self, event: ServerEvent) -> Sequence[ProviderEvent]:
        """The events in this frame of the stream; `Failed` inside ends the stream."""

    def close(self) -> Sequence[ProviderEvent]:
        """What remains when the stream has ended: `StepFinish` and `Finish`, or `Failed`."""


class Adapter(Protocol):
    """A wire format."""

    def encode(self, request: Request, endpoint: Endpoint) -> HttpRequest:
        """The HTTP request. Pure: the same request gives the same bytes."""

    def decoder(self, request: Request) -> Decoder:
        """A fresh decoder for the answer to `request`."""

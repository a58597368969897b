"""Reads `text/event-stream`. Bytes in, events out; any chunking gives the same events."""

import msgspec


class ServerEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its name (empty when the stream gives none) and its data, lines joined by newline."""

    event: str
    data: bytes

"""Reads messages of a local server: one a line, each within a bound.

What a server prints beside its messages (a greeting, a log) is left out, within a bound too.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from holdfast.errors import ContextError
from holdfast.text import all_mended
from holdfast.tools.mcp.wire.value_count import VALUES_MAX, ValueCount

MESSAGE_BYTES_MAX: Final = 16 << 20
NOISE_BYTES_MAX: Final = 1 << 20
"""What it may print that is no message, in all."""
_LARGE_BYTES: Final = 1 << 18
"""From here on, decoding would be felt by everything else on the event loop."""


async def messages(stream: ByteReceiveStream) -> AsyncGenerator[JSONRPCMessage, None]:
    """The messages; `ContextError` for a server that does not keep to the bounds."""
    noise = 0
    async for line in _lines(stream):
        if not line.strip():
            continue
        try:
            if len(line) < _LARGE_BYTES:
                message = _decoded(line)
            else:
                message = await anyio.to_thread.run_sync(_decoded, line)
        except ValueError:
            noise += len(line)
            if noise > NOISE_BYTES_MAX:
                raise ContextError("it prints text that is no MCP message to its standard output") from None
            continue
        yield message


def _decoded(line: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if not line.lstrip().startswith(b"{"):
            raise
    # A text that was cut inside a character (an emoji of a Node program, bytes of another encoding) is no
    # reason to lose the answer, for which the caller would wait until its time is over.
    try:
        mended = all_mended(json.loads(line.decode("utf-8", "replace")))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return jsonrpc_message_adapter.validate_python(mended, by_name=False)


async def _lines(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    begun: list[bytes] = []
    size, count = 0, ValueCount()
    while True:
        try:
            chunk = await stream.receive(1 << 16)
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
        *whole, rest = chunk.split(b"\n")
        for each in whole:
            if begun:  # What fits into one piece cannot hold too many.
                _count(each, count)
            yield b"".join((*begun, each))
            begun, size, count = [], 0, ValueCount()
        if rest:
            begun.append(rest)
            size += len(rest)
            _count(rest, count)
        if size > MESSAGE_BYTES_MAX:
            raise ContextError(f"it sent a message of more than {MESSAGE_BYTES_MAX >> 20} MiB")


def _count(piece: bytes, count: ValueCount) -> None:
    count.take(piece)
    if count.too_many:
        raise ContextError(f"it sent a message with more than {VALUES_MAX:,} values")

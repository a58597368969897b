"""The shell around the adapters, when the connection or the bytes break at the worst moment.

The server here is a bare socket: the mock provider writes good HTTP, and these faults need bad.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import Failed, Finish, ProviderEvent, StepFinish
from holdfast.testing.clock import FakeClock
from tests.provider.talking import a_request, hear, text_of

Script = Callable[[anyio.abc.SocketStream], Awaitable[None]]

ANTHROPIC, CHAT, GEMINI = WireKind.ANTHROPIC, WireKind.OPENAI_CHAT, WireKind.GEMINI
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

# A whole answer of each wire that ends with the body, up to and with the reason for its end.
ANSWERS = {
    ANTHROPIC: (
        b'data: {"type":"message_start","message":{"id":"a","usage":{"input_tokens":1}}}\n\n'
        b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hello"}}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}\n\n'
    ),
    CHAT: (
        b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'
        b'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    ),
    GEMINI: (
        b'data: {"candidates":[{"content":{"parts":[{"text":"hello"}]},"finishReason":"STOP"}],'
        b'"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":3}}\n\n'
    ),
}


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[str]:
    """A server that reads each request's beginning, plays the script, and hangs up."""

    async def serve(client: anyio.abc.SocketStream) -> None:
        async with client:
            try:
                await client.receive(65_536)
                await script(client)
            except anyio.BrokenResourceError:
                pass

    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            yield f"http://127.0.0.1:{port}"
            group.cancel_scope.cancel()


async def told(wire: WireKind, script: Script, **bounds: Any) -> list[ProviderEvent]:
    with anyio.fail_after(60):
        async with serving(script) as url:
            return await hear(url, a_request(wire), **bounds)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def whole(status: int, kind: str, body: bytes, *headers: str) -> Script:
    async def script(client: anyio.abc.SocketStream) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
        await client.send("\r\n".join([*lines, "", ""]).encode() + body)

    return script


def breaking(body: bytes, *, silent: bool) -> Script:
    """A stream that ends in the middle of its body, or says nothing more."""

    async def script(client: anyio.abc.SocketStream) -> None:
        await client.send(STREAM_HEAD + chunk(body))
        if silent:
            await anyio.sleep_forever()

    return script


@pytest.mark.parametrize("silent", [False, True], ids=["cut", "silent"])
@pytest.mark.parametrize("wire", ANSWERS)
async def test_a_finished_answer_is_kept(wire: WireKind, silent: bool) -> None:
    """Once the answer has said why it stops, a connection that breaks or falls silent takes nothing away."""
    events = await told(wire, breaking(ANSWERS[wire], silent=silent), stall_timeout_ms=50)

    assert text_of(events) == "hello"
    assert isinstance(events[-2], StepFinish)
    assert (events[-2].reason, events[-1]) == ("stop", Finish())


@pytest.mark.parametrize("wire", ANSWERS)
async def test_an_unfinished_answer_is_not(wire: WireKind) -> None:
    """An answer that breaks off before it says why has failed, and is asked for again."""
    unfinished = ANSWERS[wire].replace(b"stop_reason", b"x").replace(b"finish", b"x")
    events = await told(wire, breaking(unfinished, silent=False))

    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.retryable) == ("connection", True)


async def test_what_cannot_be_read_after_the_end_takes_nothing_away() -> None:
    """A malformed frame behind the reason costs its own content only."""
    events = await told(CHAT, whole(200, "text/event-stream", ANSWERS[CHAT] + b'data: {"usage": [1]}\n\n'))

    assert (text_of(events), events[-1]) == ("hello", Finish())


@pytest.mark.parametrize("wire", ANSWERS)
async def test_the_last_frame_may_lack_its_end(wire: WireKind) -> None:
    """A server that forgets the last line's end is understood; a line that was cut is not taken for whole."""
    whole_frame = await told(wire, whole(200, "text/event-stream", ANSWERS[wire].rstrip(b"\n")))
    cut_frame = await told(wire, whole(200, "text/event-stream", ANSWERS[wire].rstrip(b"\n")[:-4]))

    assert (text_of(whole_frame), whole_frame[-1]) == ("hello", Finish())
    assert isinstance(cut_frame[-1], Failed)
    assert cut_frame[-1].error.kind == "no-finish"


async def test_a_refusal_that_never_ends_is_left() -> None:
    """The bound on the whole holds for the words of an error too, though something always comes."""

    async def drip(client: anyio.abc.SocketStream) -> None:
        clock.advance(59_900)  # So that the head has a minute, and its words have a tenth of a second.
        await client.send(b"HTTP/1.1 500 X\r\ncontent-type: text/plain\r\ncontent-length: 60000\r\n\r\n")
        while True:
            await client.send(b"x")
            await anyio.sleep(0.01)

    clock = FakeClock()
    events = await told(CHAT, drip, clock=clock, total_timeout_ms=60_000, stall_timeout_ms=60_000)

    assert isinstance(events[-1], Failed)
    error = events[-1].error
    assert (error.kind, error.retryable, error.status) == ("timeout", True, 500)


DEEP = b"[" * 60_000
DEEP_FRAME = b'data: {"choices":[{"delta":{"content":%s%s}}],"error":%s%s}\n\n' % (
    (b"[" * 30_000, b"]" * 30_000) * 2
)
DEEP_ESCAPED = b'data: {"error": "\\ud800", "x": %s%s}\n\n' % (b"[" * 30_000, b"]" * 30_000)


@pytest.mark.parametrize(
    ("wire", "script", "kind"),
    [
        (CHAT, whole(500, "application/json", DEEP), "other"),
        (CHAT, whole(200, "application/json", DEEP), "malformed-stream"),
        (CHAT, whole(200, "text/event-stream", DEEP_FRAME), "malformed-stream"),
        (GEMINI, whole(200, "text/event-stream", DEEP_FRAME), "malformed-stream"),
        (GEMINI, whole(200, "text/event-stream", DEEP_ESCAPED), "malformed-stream"),
        (CHAT, whole(429, "application/json", b"{}", "retry-after: 1e306"), "rate-limit"),
    ],
    ids=["deep refusal", "deep body", "deep frame", "deep frame, gemini", "deep surrogate", "endless wait"],
)
async def test_no_body_raises(wire: WireKind, script: Script, kind: str) -> None:
    """JSON too deep to read and numbers too large to count are trouble of the provider's: an event."""
    events = await told(wire, script)

    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == kind


async def test_an_error_in_a_list_is_an_error() -> None:
    """Gemini without its event stream answers with a list of objects."""
    body = b'[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]'
    events = await told(GEMINI, whole(200, "application/json", body))

    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.retryable) == ("rate-limit", True)

"""The shell around the adapters, over real HTTP, with a provider that misbehaves in every way it can."""

import asyncio
import logging
from contextlib import aclosing

import anyio
import pytest

from holdfast.errors import ProviderError
from holdfast.net.stream import Http
from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import (
    Failed,
    Finish,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCalled,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from holdfast.provider.wire import stream
from holdfast.provider.wire.wire import Endpoint
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.testing.clock import FakeClock
from holdfast.testing.mock_provider import Call, MockProvider, Raw, Reply, Say, Think, Trouble, Usage
from tests.provider.talking import ADAPTERS, KEY, WIRES, a_model, a_request, fail, hear, text_of, thought_of

FAILURES = [
    (Trouble("rate-limit"), ("rate-limit", True, 429, None)),
    (Trouble("rate-limit", retry_after="7"), ("rate-limit", True, 429, 7_000)),
    (Trouble("server-error"), ("other", True, 500, None)),
    (Trouble("overloaded"), ("overloaded", True, 503, None)),
    (Trouble("overflow"), ("context-overflow", False, 400, None)),
    (Trouble("auth"), ("auth", False, 401, None)),
    (Trouble("html"), ("malformed-stream", False, 200, None)),
    (Trouble("json-error"), ("other", True, 200, None)),
    (Trouble("empty"), ("no-finish", True, None, None)),
    (Trouble("no-finish"), ("no-finish", True, None, None)),
    (Trouble("cut"), ("connection", True, None, None)),
    (Trouble("malformed"), ("malformed-stream", True, None, None)),
    (Trouble("error-frame"), ("overloaded", True, None, None)),
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("trouble", "expected"), FAILURES, ids=lambda value: getattr(value, "kind", None))
async def test_trouble_is_an_event(wire: WireKind, trouble: Trouble, expected: tuple[object, ...]) -> None:
    """Each way to fail ends the stream with one classified `Failed`, and without the key in it."""
    async with MockProvider() as mock:
        mock.play(trouble)
        events = await hear(mock.url, a_request(wire))

    *before, last = events
    assert isinstance(last, Failed)
    error = last.error
    assert expected == (error.kind, error.retryable, error.status, error.retry_after_ms)
    assert not any(isinstance(event, Failed | Finish) for event in before)
    assert KEY not in repr((str(error), error.headers, error.body))
    assert "\n" not in str(error)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_silent_stream_is_a_stall(wire: WireKind) -> None:
    """A provider that falls silent between two reads is left after the bound on silence."""
    async with MockProvider() as mock:
        mock.play(Trouble("stall"))
        error = await fail(mock.url, a_request(wire), stall_timeout_ms=50, header_timeout_ms=60_000)
        await asyncio.wait_for(mock.left.wait(), 60)

    assert (error.kind, error.retryable) == ("stall", True)


async def test_a_head_may_take_longer_than_a_silence() -> None:
    """The bound on silence counts from the head of the answer, not from the question."""
    async with MockProvider() as mock:
        mock.play(Trouble("no-answer"))
        error = await fail(mock.url, a_request(), stall_timeout_ms=1, header_timeout_ms=150)

    assert (
        error.kind,
        error.retryable,
        str(error),
    ) == ("timeout", True, "127.0.0.1 did not answer within 150 ms")


async def test_the_whole_is_bounded_although_something_comes() -> None:
    """A stream that never falls silent and never ends is left when its time is over."""
    clock = FakeClock()
    request = a_request()
    async with MockProvider() as mock:
        http = Http()
        mock.play(Reply((Say("word " * 400),), pace_ms=1))
        endpoint = Endpoint(base_url=f"{mock.url}/v1", key=KEY, total_timeout_ms=60_000)
        heard = []
        async with aclosing(
            stream.stream(http, ADAPTERS[WireKind.ANTHROPIC], request, endpoint, clock)
        ) as events:
            async for event in events:
                heard.append(event)
                if isinstance(event, TextStart):
                    clock.advance(60_000)
        await http.aclose()

    last = heard[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.retryable) == ("timeout", True)


async def test_nobody_there() -> None:
    """A server of this machine that is not there is named with its port, and not asked again."""
    async with MockProvider() as mock:
        url = mock.url
    error = await fail(url, a_request())

    assert (error.kind, error.retryable) == ("connection", False)
    assert str(error) == f"nothing listens at {url.removeprefix('http://')}; is the server running?"


async def test_an_address_that_is_none() -> None:
    """A malformed address is said to be one."""
    error = await fail("nonsense", a_request())

    assert (error.kind, error.retryable) == ("other", False)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_good_answer(wire: WireKind) -> None:
    """Text, a call and disjoint usage come out the same on every wire."""
    reply = Reply(
        (Say("Hello"), Call("read", {"path": "a"}, id="c1")),
        usage=Usage(input=10, output=4, reasoning=3, cache_read=20, cache_write=5),
        delta_characters=100,
    )
    async with MockProvider() as mock:
        mock.play(reply)
        events = await hear(mock.url, a_request(wire))

    text = next(event.id for event in events if isinstance(event, TextStart))
    assert [
        Start(),
        StepStart(),
        TextStart(id=text),
        TextDelta(id=text, text="Hello"),
        TextEnd(id=text),
        ToolInputStart(id="c1", name="read"),
        ToolInputDelta(id="c1", text='{"path":"a"}'),
        ToolInputEnd(id="c1"),
        ToolCalled(id="c1", name="read", input={"path": "a"}),
    ] == events[:-2]
    finish, last = events[-2:]
    assert isinstance(finish, StepFinish)
    # Gemini does not tell what it wrote to its cache, Anthropic tells no total.
    written = 0 if wire is WireKind.GEMINI else 5
    tokens = Tokens(
        total=None if wire is WireKind.ANTHROPIC else 42,
        input=15 - written,
        output=4,
        reasoning=3,
        cache=CacheTokens(read=20, write=written),
    )
    assert ("tool-calls", tokens) == (finish.reason, finish.tokens)
    assert Finish() == last


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_with_bad_json_is_still_a_call(wire: WireKind) -> None:
    """What the model wrote instead of JSON is kept, so that it can be told."""
    async with MockProvider() as mock:
        mock.play(Reply((Call("edit", id="c1", raw='{"path": "a'),)))
        events = await hear(mock.url, a_request(wire))

    called = [event for event in events if isinstance(event, ToolCalled)]
    assert [ToolCalled(id="c1", name="edit", input={}, invalid='{"path": "a')] == called


@pytest.mark.parametrize("wire", WIRES)
async def test_long_answers_come_whole(wire: WireKind) -> None:
    """Thousands of deltas, in whatever chunks the network makes of them, lose nothing."""
    text, thought = "0123456789" * 800, "abcdefghij" * 200
    async with MockProvider() as mock:
        mock.play(Reply((Think(thought), Say(text)), delta_characters=4))
        events = await hear(mock.url, a_request(wire))

    assert (thought, text) == (thought_of(events), text_of(events))


async def test_connections_are_used_again() -> None:
    """Two turns through one client need one connection."""
    async with MockProvider() as mock:
        http = Http()
        mock.play(Reply((Say("a"),)), Trouble("rate-limit"), Reply((Say("b"),)))
        for _ in range(3):
            await hear(mock.url, a_request(), http=http)
        await http.aclose()

    assert (mock.connections, len(mock.requests)) == (1, 3)


async def test_cancelling_leaves_at_once() -> None:
    """Cancellation in the middle of a stream passes through and closes the connection."""
    async with MockProvider() as mock:
        mock.play(Trouble("stall"))
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(hear, mock.url, a_request())
                await mock.stalled.wait()
                scope.cancel()
        await asyncio.wait_for(mock.left.wait(), 60)

    assert scope.cancelled_caught


async def test_leaving_early_closes_the_connection() -> None:
    """A listener may stop at any event."""
    async with MockProvider() as mock:
        http = Http()
        mock.play(Trouble("stall"))
        endpoint = Endpoint(base_url=f"{mock.url}/v1")
        adapter = ADAPTERS[WireKind.ANTHROPIC]
        async with aclosing(stream.stream(http, adapter, a_request(), endpoint, FakeClock())) as events:
            assert Start() == await anext(events)
        await asyncio.wait_for(mock.left.wait(), 60)
        await http.aclose()


async def test_a_redirect_is_not_followed() -> None:
    """The key does not travel to where an answer points."""
    async with MockProvider() as mock, MockProvider() as other:
        mock.play(Raw((b"",), 307, {"location": f"{other.url}/v1/messages"}))
        error = await fail(mock.url, a_request())

    assert (error.status, error.retryable, other.requests) == (307, False, [])


POSITIONS = {
    "body": Raw((b'{"error":{"message":"bad key %s"}}' % KEY.encode(),), 400, {}),
    "body, escaped": Raw((b'{"echo":"/v1?key=%s&x=1"}' % KEY.encode(),), 500, {}),
    "header": Raw((b"no",), 400, {"x-echo": f"got {KEY}", "set-cookie": "session=abcdef"}),
    "page": Raw((f"<p>Authorization: Bearer {KEY}</p>".encode(),), 200, {"content-type": "text/html"}),
    "frame": Raw((b'data: {"type":"error","error":{"message":"%s"}}\n\n' % KEY.encode(),)),
    "broken frame": Raw((b'data: {"x": "%s\n\n' % KEY.encode(),)),
    "cut body": Raw((b"x" * (64 * 1024 - 10) + KEY.encode(),), 400, {}),
}


@pytest.mark.parametrize("position", POSITIONS)
async def test_an_echoed_key_is_taken_out(position: str, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever a server repeats the key, neither the error nor the log has it; not even its beginning."""
    caplog.set_level(logging.DEBUG)
    async with MockProvider() as mock:
        mock.play(POSITIONS[position])
        endpoint = Endpoint(base_url=f"{mock.url}/v1", key=KEY, query={"key": KEY})
        http = Http()
        adapter = ADAPTERS[WireKind.ANTHROPIC]
        async with aclosing(stream.stream(http, adapter, a_request(), endpoint, FakeClock())) as events:
            error = [event async for event in events][-1].error
        await http.aclose()

    assert isinstance(error, ProviderError)
    shown = repr((str(error), error.headers, error.body, error.args, endpoint))
    assert KEY[:10] not in shown
    assert "abcdef'" not in shown
    assert KEY[:10] not in caplog.text


async def test_a_flood_in_an_error_is_bounded() -> None:
    """A huge error body is read up to its bound and no further."""
    async with MockProvider() as mock:
        mock.play(Raw((b"x" * 65_536,) * 40, 500, {}))
        error = await fail(mock.url, a_request())

    assert error.body is not None
    assert len(error.body) <= 64 * 1024


async def test_a_burst_lets_others_run() -> None:
    """While thousands of chunks are already there, other tasks get their turns."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with MockProvider() as mock:
        mock.play(Reply((Say("x" * 4_000),), delta_characters=1))
        task = asyncio.ensure_future(other())
        await hear(mock.url, a_request(model=a_model()))
        task.cancel()

    assert turns >= 4_000 / 20

"""Talks to the mock provider through the whole shell: adapter, HTTP, stream."""

from contextlib import aclosing
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import ProviderError
from holdfast.net.event_stream import EventStreamParser
from holdfast.net.stream import Http
from holdfast.provider.catalog.model import Limit, Model, WireKind
from holdfast.provider.request.events import Failed, ProviderEvent, ReasoningDelta, TextDelta
from holdfast.provider.request.request import Request, Text, User
from holdfast.provider.wire import stream
from holdfast.provider.wire.anthropic.adapter import AnthropicAdapter
from holdfast.provider.wire.gemini.adapter import GeminiAdapter
from holdfast.provider.wire.openai_chat.adapter import OpenAIChatAdapter
from holdfast.provider.wire.openai_responses.adapter import OpenAIResponsesAdapter
from holdfast.provider.wire.wire import Adapter, Decoder, Endpoint
from holdfast.testing.clock import FakeClock

KEY = "sk-mock-0123456789abcdefghij"

ADAPTERS: dict[WireKind, Adapter] = {
    WireKind.ANTHROPIC: AnthropicAdapter(),
    WireKind.OPENAI_CHAT: OpenAIChatAdapter(),
    WireKind.OPENAI_RESPONSES: OpenAIResponsesAdapter(),
    WireKind.GEMINI: GeminiAdapter(),
}
WIRES = list(ADAPTERS)
PROVIDERS = {
    WireKind.ANTHROPIC: "anthropic",
    WireKind.OPENAI_CHAT: "acme",
    WireKind.OPENAI_RESPONSES: "openai",
    WireKind.GEMINI: "google",
}


def a_model(wire: WireKind = WireKind.ANTHROPIC, **fields: object) -> Model:
    values: dict[str, Any] = {
        "provider_id": PROVIDERS[wire],
        "id": "m",
        "api_id": "m-1",
        "name": "M",
        "wire": wire,
    }
    return Model(**{**values, "limit": Limit(context=200_000, output=64_000), **fields})


def a_request(wire: WireKind = WireKind.ANTHROPIC, **fields: object) -> Request:
    values: dict[str, Any] = {"model": a_model(wire), "messages": (User(content=(Text(text="Hello"),)),)}
    return Request(**{**values, **fields})


async def hear(
    url: str, request: Request, *, clock: Clock | None = None, http: Http | None = None, **bounds: Any
) -> list[ProviderEvent]:
    """Everything that the provider at `url` says to `request`."""
    own = http or Http()
    endpoint = Endpoint(base_url=f"{url}/v1", key=KEY, **bounds)
    adapter = ADAPTERS[request.model.wire]
    try:
        async with aclosing(stream.stream(own, adapter, request, endpoint, clock or FakeClock())) as events:
            return [event async for event in events]
    finally:
        if http is None:
            await own.aclose()


async def fail(url: str, request: Request, **bounds: Any) -> ProviderError:
    """How the provider at `url` fails; it is the last that it says."""
    *_, last = await hear(url, request, **bounds)
    assert isinstance(last, Failed)
    return last.error


def decode(decoder: Decoder, stream: bytes) -> list[ProviderEvent]:
    """What a decoder reads in the bytes of a whole stream."""
    parser = EventStreamParser()
    events = [event for frame in parser.feed(stream) + parser.close() for event in decoder.feed(frame)]
    return [*events, *decoder.close()]


def text_of(events: list[ProviderEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thought_of(events: list[ProviderEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))

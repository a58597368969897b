"""The runtime's provider: a request goes where its model lives, or has failed by name."""

from contextlib import aclosing

import pytest
from msgspec.structs import replace

from holdfast.errors import ProviderError
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.port import Provider
from holdfast.provider.request.events import Failed, Finish, ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.provider.request.size import estimate_request
from holdfast.provider.wire.wire import Endpoint
from holdfast.provider.wire.wired import WiredProvider, Wires
from holdfast.testing.clock import FakeClock
from holdfast.testing.mock_provider import MockProvider, Reply, Say
from tests.provider.talking import KEY, WIRES, a_request, text_of


async def told(provider: Provider, request: Request) -> list[ProviderEvent]:
    """All events of one answer."""
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


def nowhere(model: Model) -> Endpoint:
    """No key."""
    raise ProviderError(f"{model.provider_id} cannot be used: it has no key", kind="auth")


@pytest.mark.parametrize(
    ("wire", "kind", "words"),
    [
        (WireKind.BEDROCK, "unsupported", "Amazon Bedrock is not supported yet"),
        (WireKind.UNSUPPORTED, "unsupported", "speaks a wire that Holdfast does not"),
        (WireKind.ANTHROPIC, "auth", "it has no key"),
    ],
)
async def test_what_cannot_be_asked_has_failed(wire: WireKind, kind: str, words: str) -> None:
    """One event, no exception, nothing sent."""
    wires = Wires()
    request = replace(a_request(), model=replace(a_request().model, wire=wire))

    (event,) = await told(WiredProvider(wires, FakeClock(), nowhere), request)
    await wires.aclose()

    assert isinstance(event, Failed)
    assert event.error.kind == kind
    assert words in str(event.error)


async def test_a_request_over_the_hosts_limit_is_not_sent() -> None:
    """The limit is known beforehand, so the bytes stay here."""
    wires = Wires()
    huge = a_request(system=("x" * 33_000_000,))
    provider = WiredProvider(wires, FakeClock(), lambda _: Endpoint(base_url="http://127.0.0.1:9", key=KEY))

    (event,) = await told(provider, huge)
    await wires.aclose()

    assert isinstance(event, Failed)
    assert (event.error.kind, event.error.retryable) == ("context-overflow", False)
    assert str(event.error) == (
        "the request to anthropic has 33.0 MB, and its limit is 32 MB; compact the session or leave out "
        "attachments"
    )


@pytest.mark.parametrize("wire", WIRES)
async def test_each_wire_answers_over_http(wire: WireKind) -> None:
    """Through the model's own endpoint."""
    wires = Wires()
    async with MockProvider() as mock:
        mock.play(Reply((Say("Hello there"),)))
        provider = WiredProvider(wires, FakeClock(), lambda _: Endpoint(base_url=f"{mock.url}/v1", key=KEY))
        events = await told(provider, a_request(wire))
    await wires.aclose()

    assert text_of(events) == "Hello there"
    assert isinstance(events[-1], Finish)


def test_the_size_of_a_request_is_estimated_from_its_blocks() -> None:
    """Four characters a token; settings do not count."""
    small = a_request()

    assert estimate_request(replace(small, system=("x" * 4_001,))) - estimate_request(small) == 1_001
    assert estimate_request(replace(small, body={"x": "y" * 4_000})) == estimate_request(small)

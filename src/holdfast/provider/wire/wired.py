"""The provider of the runtime: each request goes to its model's endpoint, over its model's wire."""

from collections.abc import AsyncGenerator, Callable
from functools import cache
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.errors import ProviderError
from holdfast.net.stream import Http
from holdfast.provider.catalog import packages
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request.events import Failed, ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.provider.wire import stream
from holdfast.provider.wire.wire import Adapter, Endpoint

if TYPE_CHECKING:
    from holdfast.provider.local.server import LocalServers


class Wires:
    """The connections of a process: made and closed by the application, shared by all sessions."""

    def __init__(self) -> None:
        self.http = Http()
        self._servers: LocalServers | None = None

    def servers(self) -> "LocalServers":
        """The servers of local models, which most processes never need."""
        if self._servers is None:
            from holdfast.provider.local.server import LocalServers

            self._servers = LocalServers()
        return self._servers

    async def aclose(self) -> None:
        """Drop every connection, and end every server that this process has started."""
        try:
            if self._servers is not None:
                await self._servers.aclose()
        finally:
            await self.http.aclose()


class WiredProvider:
    """Fills `provider.port.Provider`. `endpoint_of` knows where a model is reached and with which key."""

    def __init__(self, wires: Wires, clock: Clock, endpoint_of: Callable[[Model], Endpoint]) -> None:
        self._wires = wires
        self._clock = clock
        self._endpoint_of = endpoint_of

    def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """The model's answer; a model that cannot be reached at all has failed, with the reason."""
        try:
            adapter = adapter_of(request.model.wire, request.model.provider_id)
            endpoint = self._endpoint_of(request.model)
        except ProviderError as error:
            return _failed(error)
        if request.model.npm == packages.LOCAL:
            from holdfast.provider.local import talk

            return talk.stream(
                self._wires.http, adapter, request, endpoint, self._clock, servers=self._wires.servers()
            )
        return stream.stream(self._wires.http, adapter, request, endpoint, self._clock)


@cache
def adapter_of(wire: WireKind, provider_id: str) -> Adapter:
    """The adapter of a wire, imported when it is first needed; `ProviderError` where there is none."""
    match wire:
        case WireKind.ANTHROPIC:
            from holdfast.provider.wire.anthropic.adapter import AnthropicAdapter

            return AnthropicAdapter()
        case WireKind.OPENAI_CHAT:
            from holdfast.provider.wire.openai_chat.adapter import OpenAIChatAdapter

            return OpenAIChatAdapter()
        case WireKind.OPENAI_RESPONSES:
            from holdfast.provider.wire.openai_responses.adapter import OpenAIResponsesAdapter

            return OpenAIResponsesAdapter()
        case WireKind.GEMINI:
            from holdfast.provider.wire.gemini.adapter import GeminiAdapter

            return GeminiAdapter()
        case WireKind.BEDROCK:
            raise ProviderError(
                f"{provider_id}: Amazon Bedrock is not supported yet; use the model through another provider",
                kind="unsupported",
            )
        case _:
            raise ProviderError(
                f"{provider_id} speaks a wire that Holdfast does not; choose another provider",
                kind="unsupported",
            )


async def _failed(error: ProviderError) -> AsyncGenerator[ProviderEvent, None]:
    yield Failed(error=error)

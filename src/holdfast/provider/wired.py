"""The provider of the runtime: each request goes to its model's endpoint, over its model's wire."""

from collections.abc import AsyncGenerator, Callable
from functools import cache

from holdfast.clock import Clock
from holdfast.errors import ProviderError
from holdfast.net.stream import Http
from holdfast.provider import bedrock, stream
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.events import Failed, ProviderEvent
from holdfast.provider.request import Request
from holdfast.provider.wire import Adapter, Endpoint


class WiredProvider:
    """Fills `provider.port.Provider`. `endpoint_of` knows where a model is reached and with which key."""

    def __init__(self, http: Http, clock: Clock, endpoint_of: Callable[[Model], Endpoint]) -> None:
        self._http = http
        self._clock = clock
        self._endpoint_of = endpoint_of

    def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """What the model says; a model that cannot be reached at all has failed, and says why."""
        try:
            adapter = adapter_of(request.model.wire, request.model.provider_id)
            endpoint = self._endpoint_of(request.model)
        except ProviderError as error:
            return _failed(error)
        return stream.stream(self._http, adapter, request, endpoint, self._clock)


@cache
def adapter_of(wire: WireKind, provider_id: str) -> Adapter:
    """The adapter of a wire, imported when it is first needed; `ProviderError` where there is none."""
    match wire:
        case WireKind.ANTHROPIC:
            from holdfast.provider.anthropic.adapter import AnthropicAdapter

            return AnthropicAdapter()
        case WireKind.OPENAI_CHAT:
            from holdfast.provider.openai_chat.adapter import OpenAIChatAdapter

            return OpenAIChatAdapter()
        case WireKind.OPENAI_RESPONSES:
            from holdfast.provider.openai_responses.adapter import OpenAIResponsesAdapter

            return OpenAIResponsesAdapter()
        case WireKind.GEMINI:
            from holdfast.provider.gemini.adapter import GeminiAdapter

            return GeminiAdapter()
        case WireKind.BEDROCK:
            raise bedrock.refusal(provider_id)
        case _:
            raise ProviderError(
                f"{provider_id} speaks a wire that Holdfast does not; choose another provider",
                kind="unsupported",
            )


async def _failed(error: ProviderError) -> AsyncGenerator[ProviderEvent, None]:
    yield Failed(error=error)

"""The Chat Completions adapter: fills the port of `provider/wire/wire.py`."""

from holdfast.provider.request.request import Request
from holdfast.provider.wire import http_request, openai_role
from holdfast.provider.wire.openai_chat import body
from holdfast.provider.wire.openai_chat.decode import ChatDecoder
from holdfast.provider.wire.wire import Endpoint, HttpRequest


class OpenAIChatAdapter:
    """Speaks `POST /chat/completions`."""

    def encode(self, request: Request, endpoint: Endpoint) -> HttpRequest:
        headers: dict[str, str] = {}
        if endpoint.key and not http_request.states_key(request, endpoint, "authorization", "api-key"):
            headers["authorization"] = f"Bearer {endpoint.key}"
        return http_request.build(
            request,
            endpoint,
            path="/chat/completions",
            headers=headers,
            body=body.build(request, openai_role.of(request.model, endpoint.base_url)),
        )

    def decoder(self, request: Request) -> ChatDecoder:
        return ChatDecoder(request.model.provider_id, request.model.reasoning_field)

"""The Responses adapter: fills the port of `provider/wire/wire.py`."""

from holdfast.provider.request.request import Request
from holdfast.provider.wire import http_request, openai_role
from holdfast.provider.wire.openai_responses import body, item_ids
from holdfast.provider.wire.openai_responses.decode import ResponsesDecoder
from holdfast.provider.wire.wire import Endpoint, HttpRequest


class OpenAIResponsesAdapter:
    """Speaks `POST /responses`."""

    def encode(self, request: Request, endpoint: Endpoint) -> HttpRequest:
        headers: dict[str, str] = {}
        if endpoint.key and not http_request.states_key(request, endpoint, "authorization", "api-key"):
            headers["authorization"] = f"Bearer {endpoint.key}"
        return http_request.build(
            request,
            endpoint,
            path="/responses",
            headers=headers,
            body=body.build(request, openai_role.of(request.model, endpoint.base_url)),
        )

    def decoder(self, request: Request) -> ResponsesDecoder:
        return ResponsesDecoder(request.model.provider_id, ids=item_ids.policy(request) != "never")

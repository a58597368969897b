"""The Messages adapter: fills the port of `provider/wire/wire.py`."""

from urllib.parse import urlsplit

from holdfast.provider.request.request import Request
from holdfast.provider.wire import http_request
from holdfast.provider.wire.anthropic import body
from holdfast.provider.wire.anthropic.decode import MessagesDecoder
from holdfast.provider.wire.wire import Endpoint, HttpRequest

VERSION = "2023-06-01"


class AnthropicAdapter:
    """Speaks `POST /messages`."""

    def encode(self, request: Request, endpoint: Endpoint) -> HttpRequest:
        headers = {"anthropic-version": VERSION}
        if endpoint.key and not http_request.states_key(request, endpoint, "x-api-key", "authorization"):
            headers["x-api-key"] = endpoint.key
        # Users give the vendor's bare address as well as one that ends in a version.
        bare = urlsplit(endpoint.base_url).path in {"", "/"}
        return http_request.build(
            request,
            endpoint,
            path="/v1/messages" if bare else "/messages",
            headers=headers,
            body=body.build(request),
        )

    def decoder(self, request: Request) -> MessagesDecoder:
        return MessagesDecoder(request.model.provider_id)

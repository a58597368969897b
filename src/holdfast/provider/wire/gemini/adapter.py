"""The Gemini adapter: fills the port of `provider/wire/wire.py`.

The key goes into a header. The wire would take it in the address too, where proxies and logs would see it.
"""

from urllib.parse import quote, urlsplit

from holdfast.provider.request.request import Request
from holdfast.provider.wire import http_request
from holdfast.provider.wire.gemini import body
from holdfast.provider.wire.gemini.decode import GeminiDecoder
from holdfast.provider.wire.wire import Endpoint, HttpRequest


class GeminiAdapter:
    """Speaks `POST /models/…:streamGenerateContent`."""

    def encode(self, request: Request, endpoint: Endpoint) -> HttpRequest:
        headers: dict[str, str] = {}
        if endpoint.key and not http_request.states_key(request, endpoint, "x-goog-api-key", "authorization"):
            headers["x-goog-api-key"] = endpoint.key
        name = request.model.api_id
        model = quote(name if "/" in name else f"models/{name}", safe="/@")
        # Users give the vendor's bare address as well as one that ends in a version.
        version = "/v1beta" if urlsplit(endpoint.base_url).path in {"", "/"} else ""
        return http_request.build(
            request,
            endpoint,
            path=f"{version}/{model}:streamGenerateContent?alt=sse",
            headers=headers,
            body=body.build(request),
        )

    def decoder(self, request: Request) -> GeminiDecoder:
        return GeminiDecoder(request.model.provider_id)

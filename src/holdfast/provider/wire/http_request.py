"""Puts an HTTP request together, for all adapters alike: address, headers, body.

Order of headers, the later wins whatever its case: the wire's own, the endpoint's, the request's. The body's
compatibility fields are merged deeply, last. What must stay true: the same request gives the same bytes.
"""

from urllib.parse import urlencode

import msgspec

from holdfast.provider.catalog.settings import merged
from holdfast.provider.request.request import Request
from holdfast.provider.wire.wire import Endpoint, HttpRequest
from holdfast.schema.wire import JsonMap
from holdfast.text import all_mended

# They answer for themselves; every other one may stand in front of several machines.
_NO_GATEWAY = frozenset({"anthropic", "openai", "google"})


def build(
    request: Request, endpoint: Endpoint, *, path: str, headers: dict[str, str], body: JsonMap
) -> HttpRequest:
    """POST `body` to `path` under the endpoint's address."""
    url = endpoint.base_url.rstrip("/") + path
    if endpoint.query:
        url += ("&" if "?" in url else "?") + urlencode(endpoint.query)
    own = {"content-type": "application/json", "accept": "text/event-stream", **headers}
    if request.session is not None and request.model.provider_id not in _NO_GATEWAY:
        own["x-session-affinity"] = request.session
    joined: dict[str, str] = {}
    for group in (own, endpoint.headers, request.headers):
        joined |= {name.lower(): value for name, value in group.items()}
    return HttpRequest(url=url, headers=joined, body=encode(merged(body, request.body)))


def states_key(request: Request, endpoint: Endpoint, *names: str) -> bool:
    """Whether a configured header already carries a key."""
    given = {name.lower() for group in (endpoint.headers, request.headers) for name in group}
    return not given.isdisjoint(names)


def encode(body: JsonMap) -> bytes:
    """The body as JSON. A lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(all_mended(body))

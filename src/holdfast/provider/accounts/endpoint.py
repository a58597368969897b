"""Where a model's provider is reached: address, key, headers and time-outs. Pure.

The address, first found: `options.baseURL`, the model's own, the provider's, the package's. It ends before
the wire's own path (`/messages`, `/chat/completions`, `/responses`, `/models/…`) and has no slash at its end.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidInput
from holdfast.provider.accounts.secret import Secret
from holdfast.provider.catalog import packages
from holdfast.schema.wire import JsonMap

if TYPE_CHECKING:
    from holdfast.provider.wire.wire import Endpoint

TEMPLATE = re.compile(r"\$\{(\w+)\}")
RESOURCES = ("AZURE_RESOURCE_NAME", "AZURE_COGNITIVE_SERVICES_RESOURCE_NAME")
WIRE_PATHS = ("/chat/completions", "/responses", "/messages")
TIMEOUTS = {
    "headerTimeout": "header_timeout_ms",
    "chunkTimeout": "stall_timeout_ms",
    "timeout": "total_timeout_ms",
}


def address(
    provider_id: str,
    npm: str,
    options: JsonMap,
    env: Mapping[str, str],
    *,
    model: str | None,
    provider: str | None,
) -> str:
    """The base address. What it needs and cannot get is an error that names it."""
    given = options.get("baseURL")
    if given is not None and not isinstance(given, str):
        raise InvalidInput(f"provider {provider_id}: options.baseURL must be a text")
    template = given or model or provider or packages.find(npm, provider_id).base_url
    if not template:
        raise InvalidInput(f"provider {provider_id} has no address; set options.baseURL")
    values = dict(env)
    resource = options.get("resourceName")
    if isinstance(resource, str):
        values |= dict.fromkeys(RESOURCES, resource)
    missing = [name for name in TEMPLATE.findall(template) if not values.get(name)]
    if missing:
        raise InvalidInput(f"provider {provider_id} needs {' and '.join(missing)} in the environment")
    url = TEMPLATE.sub(lambda found: values[found[1]], template).rstrip("/")
    if not url.startswith(("https://", "http://")):
        raise InvalidInput(
            f"provider {provider_id}: {url!r} is no address; it must begin with https:// or http://"
        )
    for path in WIRE_PATHS:
        url = url.removesuffix(path)
    return url


def make(provider_id: str, npm: str, options: JsonMap, base_url: str, key: Secret | None) -> "Endpoint":
    """The endpoint at an address."""
    from holdfast.provider.wire.wire import Endpoint

    text = key.reveal() if key else None
    chosen = settings(provider_id, options)
    if npm == "@ai-sdk/azure" and text is not None:
        # Azure takes a key in a header of its own; `Authorization` is for its directory's tokens.
        chosen["headers"] = {"api-key": text} | chosen["headers"]
        text = None
    return Endpoint(base_url=base_url, key=text, **chosen)


def settings(provider_id: str, options: JsonMap) -> dict[str, Any]:
    """The fields of an endpoint that the options set; a wrong one is an error."""
    chosen: dict[str, Any] = {"headers": _headers(provider_id, options.get("headers"))}
    if isinstance(options.get("apiVersion"), str):
        chosen["query"] = {"api-version": options["apiVersion"]}
    for name, field in TIMEOUTS.items():
        match options.get(name):
            case None:
                continue
            case False:
                chosen[field] = None
            case int(number) if number > 0 and number is not True:
                chosen[field] = number
            case _:
                raise InvalidInput(
                    f"provider {provider_id}: options.{name} must be milliseconds, or false for none"
                )
    return chosen


def _headers(provider_id: str, headers: Any) -> dict[str, str]:
    match headers:
        case None:
            return {}
        case dict() if all(isinstance(item, str) for pair in headers.items() for item in pair):
            return dict(headers)
        case _:
            # The values are not shown: a header may carry a key.
            raise InvalidInput(f"provider {provider_id}: options.headers must be texts by name")

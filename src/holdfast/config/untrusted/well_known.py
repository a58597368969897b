"""Settings of a provider's host that the user logged in to: `https://HOST/.well-known/opencode`.

The host may describe its own service and be stricter than the user. It cannot start programs, set keys,
choose which variable holds one, send requests elsewhere than to itself, or widen permissions; and where it
chose the address, no key but its own token goes (`host_providers`). The caller fetches, and keeps what a host
last answered for when it does not answer within 5 s.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from holdfast.config.documents.document import BYTES_MAX, Document
from holdfast.config.untrusted import distrust
from holdfast.config.untrusted.distrust import Reduced
from holdfast.errors import HoldfastError, InvalidInput

WAIT_S: Final = 5.0

_HOST = re.compile(r"(?=.{1,253}(?::\d{1,5})?$)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?")
_FILLED_IN = frozenset("${}\\")
"""Signs by which a variable of the environment could get into an address, or its host be misread."""
_PLAIN_KEYS = (
    "model",
    "small_model",
    "disabled_providers",
    "enabled_providers",
    "compaction",
    "tool_output",
    "attachment",
)
_PROVIDER_KEYS = ("id", "name", "whitelist", "blacklist")
_MODEL_KEYS = (
    "id",
    "name",
    "family",
    "release_date",
    "status",
    "attachment",
    "reasoning",
    "temperature",
    "tool_call",
    "interleaved",
    "modalities",
    "limit",
    "cost",
)


class Fetch(Protocol):
    """Gets the body of a URL, or raises a `HoldfastError` or an `OSError`."""

    async def __call__(self, url: str, /) -> bytes: ...


class Remote(msgspec.Struct, frozen=True):
    """What a host answered, now or when it last did."""

    host: str
    text: str


def url_of(host: str) -> str:
    """Where the settings of a host are; a name that is no host is refused."""
    if not _HOST.fullmatch(host):
        raise InvalidInput(f"{host[:60]!r} is not the name of a host; log in again with its name")
    return f"https://{host}/.well-known/opencode"


async def ask(hosts: Iterable[str], fetch: Fetch) -> dict[str, str]:
    """Ask every host at once. One that fails, or answers nonsense, is not in the result."""
    import anyio

    found: dict[str, str] = {}

    async def one(host: str) -> None:
        text = await _fetched(host, fetch)
        if text is not None:
            found[host] = text

    async with anyio.create_task_group() as group:
        for host in dict.fromkeys(hosts):
            group.start_soon(one, host)
    return found


async def _fetched(host: str, fetch: Fetch) -> str | None:
    import anyio

    try:
        with anyio.fail_after(WAIT_S):
            data = await fetch(url_of(host))
        if len(data) > BYTES_MAX:
            return None
        text = data.decode()
        document(Remote(host, text))
    except (HoldfastError, OSError, TimeoutError, UnicodeDecodeError):
        return None
    return text


def document(remote: Remote) -> Document:
    """The host's settings: the `config` of what it answered. A pointer to another address is not followed."""
    url = url_of(remote.host)
    try:
        body = msgspec.json.decode(remote.text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise InvalidInput(f"{url}:1:1: this is not a JSON object") from None
    config = body.get("config")
    return Document(url, remote.text, "given", Path("/"), config if isinstance(config, dict) else {})


def reduce(value: dict[str, Any], host: str) -> Reduced:
    """The part of a host's settings that it may decide."""
    left = distrust.reduce({key: item for key, item in value.items() if key != "instructions"})
    dropped = [key for key in left.dropped if key not in (*_PLAIN_KEYS, "provider", "share")]
    kept = {key: value[key] for key in _PLAIN_KEYS if key in value}
    if value.get("share") in ("disabled", "manual"):
        kept["share"] = value["share"]
    elif "share" in value:
        dropped.append("share")
    if "instructions" in value:
        dropped.append("instructions")
    if isinstance(value.get("provider"), dict):
        kept["provider"] = {
            name: _provider(name, entry, host, dropped)
            for name, entry in value["provider"].items()
            if isinstance(entry, dict)
        }
    return replace(left, value={**left.value, **kept}, dropped=dropped)


def _provider(name: str, entry: dict[str, Any], host: str, dropped: list[str]) -> dict[str, Any]:
    kept = {key: entry[key] for key in _PROVIDER_KEYS if key in entry}
    options = entry.get("options")
    address = options.get("baseURL") if isinstance(options, dict) else None
    address = entry.get("api") if address is None else address
    own = isinstance(address, str) and is_own(address, host)
    if own:
        kept["options"] = {"baseURL": address}
        # Without an address of the host a package would bring another's, and the user's key would go there.
        kept |= {key: entry[key] for key in ("npm",) if key in entry}
    models = entry.get("models")
    if isinstance(models, dict):
        kept["models"] = {
            id: {key: model[key] for key in _MODEL_KEYS if key in model}
            for id, model in models.items()
            if isinstance(model, dict)
        }
    allowed = {*_PROVIDER_KEYS, "models", *(("npm", "options", "api") if own else ())}
    dropped.extend(f"provider.{name}.{key}" for key in entry if key not in allowed)
    return kept


def is_own(address: str, host: str) -> bool:
    """Whether requests would go to the host itself or below it, encrypted, and carry nothing else there."""
    if any(sign in _FILLED_IN or not sign.isprintable() or sign.isspace() for sign in address):
        return False
    try:
        parts = urlsplit(address)
        named = parts.hostname or ""
    except ValueError:
        return False
    own = host.partition(":")[0].lower()
    return parts.scheme == "https" and (named == own or named.endswith(f".{own}")) and "@" not in parts.netloc

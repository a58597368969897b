"""Model servers that already run on this machine: found on their usual ports, and offered.

A server is asked who it is only when its process is the user's own: on a machine that others use too, a
user's server would read what this user writes. What must stay true: nothing but 127.0.0.1 is asked, each
question is bounded in time and size, all are asked at once, and nothing is used that was not accepted.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, assert_never

import anyio
import msgspec

from holdfast.errors import ProviderError
from holdfast.net.stream import Http
from holdfast.provider.catalog import packages
from holdfast.provider.local import listeners
from holdfast.schema import typed
from holdfast.schema.provider_entry import ProviderEntry
from holdfast.schema.wire import JsonMap

ServerKind = Literal["ollama", "lmstudio", "llamacpp", "vllm"]

PORTS: dict[ServerKind, int] = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
NAMES: dict[ServerKind, str] = {
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
}
PATHS: dict[ServerKind, str] = {
    "ollama": "/api/tags",
    "lmstudio": "/api/v0/models",
    "llamacpp": "/v1/models",
    "vllm": "/v1/models",
}
ASK_MS = 300
BYTES_MAX = 256 * 1024
MODELS_MAX = 100
NAME_MAX = 200


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a server has. `context` in tokens, 0 when it does not say."""

    id: str
    context: int = 0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A server that runs. `problem` says why it is not offered."""

    kind: ServerKind
    port: int
    models: tuple[FoundModel, ...] = ()
    problem: str | None = None

    @property
    def name(self) -> str:
        return NAMES[self.kind]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


async def find(
    http: Http,
    *,
    uid: int,
    ports: Mapping[ServerKind, int] = PORTS,
    owners: Callable[[int], frozenset[int] | None] = listeners.owners,
) -> tuple[Found, ...]:
    """The servers on these ports, in the order given. A port where something else listens is left out."""
    found: dict[ServerKind, Found] = {}

    async def look(kind: ServerKind, port: int) -> None:
        whose = owners(port)
        if whose is None:
            answer = Found(kind=kind, port=port, problem="this system does not say whose process it is")
        elif not whose:
            return
        elif whose != {uid}:
            answer = Found(kind=kind, port=port, problem="another user's process listens there")
        elif (models := await _ask(http, kind, port)) is None:
            return
        else:
            answer = Found(
                kind=kind, port=port, models=models, problem=None if models else "it has no model yet"
            )
        found[kind] = answer

    async with anyio.create_task_group() as tasks:
        for kind, port in ports.items():
            tasks.start_soon(look, kind, port)
    return tuple(found[kind] for kind in ports if kind in found)


def offers(
    found: Sequence[Found], *, answered: Collection[str], configured: bool, interactive: bool
) -> tuple[Found, ...]:
    """What the user should be asked about now. Pure.

    Nothing when a provider is configured, or without a terminal; never the same server twice.
    """
    if configured or not interactive:
        return ()
    return tuple(one for one in found if one.problem is None and name_of(one) not in answered)


def name_of(found: Found) -> str:
    """By which name an answer is remembered."""
    return f"{found.kind}:{found.port}"


def entry(found: Found) -> ProviderEntry:
    """The server as an entry of the settings."""
    return typed.convert(settings(found), ProviderEntry)


def settings(found: Found) -> JsonMap:
    """What the user would write under `provider.<kind>` of their settings."""
    # The catalogue has models of this provider, which this server need not have.
    only = {"whitelist": [model.id for model in found.models]} if found.kind == "lmstudio" else {}
    return {
        "npm": packages.COMPATIBLE,
        "name": found.name,
        "options": {"baseURL": found.base_url},
        **only,
        "models": {
            model.id: {"limit": {"context": model.context}} if model.context else {} for model in found.models
        },
    }


async def _ask(http: Http, kind: ServerKind, port: int) -> tuple[FoundModel, ...] | None:
    try:
        answer = await http.get(
            f"http://127.0.0.1:{port}{PATHS[kind]}", bytes_max=BYTES_MAX, timeout_ms=ASK_MS
        )
    except ProviderError:
        return None
    return identify(kind, answer.body) if answer.status == 200 else None


class _Item(msgspec.Struct, frozen=True, kw_only=True):
    """One model in a server's list, in the words of all four."""

    id: str = ""
    name: str = ""
    type: str = ""
    owned_by: str = ""
    max_model_len: int | None = None
    loaded_context_length: int | None = None
    meta: dict[str, msgspec.Raw] | None = None


class _Tags(msgspec.Struct, frozen=True, kw_only=True):
    models: tuple[_Item, ...]


class _List(msgspec.Struct, frozen=True, kw_only=True):
    data: tuple[_Item, ...]


def identify(kind: ServerKind, body: bytes) -> tuple[FoundModel, ...] | None:
    """The models in an answer of such a server; None when another kind of server gave it."""
    try:
        items = typed.decode(body, _Tags).models if kind == "ollama" else typed.decode(body, _List).data
    except (msgspec.MsgspecError, UnicodeError):
        return None
    match kind:
        case "ollama":
            # How much context it serves is its own setting, which it does not report here.
            models = [FoundModel(id=item.name) for item in items]
        case "lmstudio":
            # Until a model is loaded it is not known with how much context it will be; its maximum is not it.
            models = [
                FoundModel(id=item.id, context=item.loaded_context_length or 0)
                for item in items
                if item.type in ("llm", "vlm")
            ]
        case "llamacpp" | "vllm":
            if any(item.owned_by != kind for item in items):
                return None
            models = [
                FoundModel(id=item.id, context=item.max_model_len or _served(item.meta)) for item in items
            ]
        case _:
            assert_never(kind)
    return tuple(model for model in models if _is_usable(model.id))[:MODELS_MAX]


def _served(meta: dict[str, msgspec.Raw] | None) -> int:
    """The context that llama.cpp gives a request; what the model was trained with says nothing of it."""
    try:
        return msgspec.json.decode((meta or {}).get("n_ctx", b"0"), type=int)
    except msgspec.MsgspecError:
        return 0


def _is_usable(id: str) -> bool:
    return 0 < len(id) <= NAME_MAX and id.isprintable() and "embed" not in id.lower()

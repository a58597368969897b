"""Reads what models.dev publishes: all providers and their models as one JSON object. Pure.

What is left out: models that give no text or take none, and those that only embed, rank, speak or transcribe.
A mode of a model (`experimental.modes`: a faster service at another price) becomes a model of its own, named
`MODEL-MODE`, as in OpenCode.
"""

import re
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.provider.catalog.snapshot import Place
from holdfast.schema import typed
from holdfast.schema.provider_entry import CostEntry, ModalitiesEntry, ModelEntry, TierEntry, TierSize
from holdfast.schema.wire import JsonMap

NO_CHAT = re.compile(r"embed|gpt-image|rerank|whisper|(?:^|[-/])tts(?:-|$)|transcribe|moderation|-asr(?:-|$)")
OVER_200K = 200_000
PLACES = Decimal("1e-9")

Cost = TypeVar("Cost", CostEntry, TierEntry)


class Published(msgspec.Struct, kw_only=True):
    """A provider in models.dev's words."""

    name: str
    npm: str
    env: tuple[str, ...] = ()
    api: str | None = None
    models: dict[str, msgspec.Raw] = {}


class ModeApi(msgspec.Struct, kw_only=True):
    """How a mode is asked for."""

    body: JsonMap = {}
    headers: dict[str, str] = {}


class Mode(msgspec.Struct, kw_only=True):
    """What a mode changes."""

    cost: CostEntry | None = None
    provider: ModeApi | None = None


class Modes(msgspec.Struct, kw_only=True):
    """The part of `experimental` that we read."""

    modes: dict[str, Mode] = {}


def read(data: bytes) -> dict[str, tuple[Place, dict[str, ModelEntry]]]:
    """Providers and models worth having. A model that cannot be read is left out, a provider likewise."""
    try:
        providers = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"this is not the JSON of models.dev: {error}") from error
    found = {}
    for id, raw in providers.items():
        try:
            provider = typed.decode(raw, Published)
        except msgspec.MsgspecError:
            continue
        models = _models(provider.models)
        if models:
            place = Place(name=provider.name, npm=provider.npm, env=provider.env, api=provider.api)
            found[id] = (place, models)
    if not found:
        raise InvalidInput("this is not the JSON of models.dev: no provider in it has a model")
    return found


def _models(raws: dict[str, msgspec.Raw]) -> dict[str, ModelEntry]:
    found: dict[str, ModelEntry] = {}
    for id, raw in raws.items():
        try:
            model = typed.decode(raw, ModelEntry)
        except msgspec.MsgspecError:
            continue
        if not _is_chat(id, model):
            continue
        plain = brief(replace(model, id=None if model.id == id else model.id, experimental=None))
        found[id] = plain
        for mode, changed in _modes(model.experimental).items():
            found.setdefault(f"{id}-{mode}", _in_mode(id, plain, mode, changed))
    return found


def brief(model: ModelEntry) -> ModelEntry:
    """The same model without what is the default anyway, and with its cost in tiers."""
    text = ModalitiesEntry(input=("text",), output=("text",))
    return replace(
        model,
        attachment=model.attachment or None,
        reasoning=model.reasoning or None,
        tool_call=None if model.tool_call else model.tool_call,
        temperature=None if model.temperature else model.temperature,
        modalities=None if model.modalities == text else model.modalities,
        cost=_tiered(model.cost),
    )


def _is_chat(id: str, model: ModelEntry) -> bool:
    modalities = model.modalities
    if modalities is not None and ("text" not in modalities.output or "text" not in modalities.input):
        return False
    return not any(NO_CHAT.search(word.lower()) for word in (id, model.family or ""))


def _tiered(cost: CostEntry | None) -> CostEntry | None:
    """The cost with tiers only: where they are stated, `context_over_200k` repeats one of them."""
    if cost is None:
        return None
    tiers = cost.tiers
    if not tiers and cost.context_over_200k is not None:
        tiers = (replace(cost.context_over_200k, tier=TierSize(size=OVER_200K)),)
    return replace(_dusted(cost), context_over_200k=None, tiers=tuple(_dusted(tier) for tier in tiers))


def _dusted(cost: Cost) -> Cost:
    """Prices as they were written: what is published has passed through floats (0.049999999999999996)."""
    names = ("input", "output", "cache_read", "cache_write")
    stated = {name: value for name in names if (value := getattr(cost, name)) is not None}
    return replace(cost, **{name: dusted(value) for name, value in stated.items()})


def dusted(price: Decimal) -> Decimal:
    """A number of dollars without what a float left behind its ninth place."""
    if not price.is_finite():
        return price
    plain = price.quantize(PLACES).normalize()
    return plain.quantize(Decimal(1)) if plain == plain.to_integral_value() else plain


def _modes(experimental: Any) -> dict[str, Mode]:
    try:
        return typed.convert(experimental, Modes).modes if isinstance(experimental, dict) else {}
    except msgspec.ValidationError:
        return {}


def _in_mode(id: str, model: ModelEntry, mode: str, changed: Mode) -> ModelEntry:
    api = changed.provider or ModeApi()
    return replace(
        model,
        id=model.id or id,
        name=f"{model.name or id} ({mode})",
        cost=_tiered(changed.cost),  # a mode without a price has none that we know
        options=model.options | api.body,
        headers=model.headers | api.headers,
    )

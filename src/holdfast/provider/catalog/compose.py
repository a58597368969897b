"""Makes a Model out of what the catalogue and the settings say of it. Pure.

The settings win field by field. A field that neither has gets the careful default: unknown limits and prices
stay unknown, text goes in and out, tools can be called.
"""

from typing import Literal, cast, get_args

from msgspec.structs import replace

from holdfast.provider.catalog import ingest, packages, variants
from holdfast.provider.catalog.model import Limit, Modality, Model, Price, Prices, Settings, Tier, WireKind
from holdfast.provider.catalog.settings import overlay
from holdfast.schema.provider_entry import (
    ApiEntry,
    CostEntry,
    InterleavedEntry,
    LimitEntry,
    ModelEntry,
    TierEntry,
)
from holdfast.schema.wire import JsonMap, Num

MODALITIES: frozenset[str] = frozenset(get_args(Modality))
OVER_200K = 200_000


def combine(record: ModelEntry | None, entry: ModelEntry | None) -> ModelEntry:
    """The record of the catalogue with the settings' entry over it."""
    if record is None or entry is None:
        return record or entry or ModelEntry()
    changed = {
        name: value for name in entry.__struct_fields__ if (value := getattr(entry, name)) not in (None, {})
    }
    changed["options"] = record.options | entry.options
    changed["headers"] = record.headers | entry.headers
    if entry.limit is not None and record.limit is not None:
        changed["limit"] = LimitEntry(
            context=entry.limit.context or record.limit.context,
            output=entry.limit.output or record.limit.output,
            input=record.limit.input if entry.limit.input is None else entry.limit.input,
        )
    if entry.provider is not None and record.provider is not None:
        changed["provider"] = ApiEntry(
            npm=entry.provider.npm or record.provider.npm,
            api=entry.provider.api or record.provider.api,
            shape=entry.provider.shape or record.provider.shape,
        )
    return replace(record, **changed)


def compose(provider_id: str, id: str, model: ModelEntry, *, npm: str, completions: bool = False) -> Model:
    """The model. `npm` is its provider's package; `completions` asks OpenAI's for Chat."""
    api = model.provider or ApiEntry()
    npm = api.npm or npm
    package = packages.find(npm, provider_id)
    wire = package.wire
    if wire is WireKind.OPENAI_RESPONSES and (completions or api.shape == "completions"):
        wire = WireKind.OPENAI_CHAT
    limit = model.limit or LimitEntry()
    modalities = model.modalities
    takes = _modalities(modalities.input if modalities else ())
    return Model(
        provider_id=provider_id,
        id=id,
        api_id=model.id or id,
        name=model.name or id,
        wire=wire,
        npm=npm,
        base_url=api.api,
        family=model.family or "",
        release_date=model.release_date or "",
        status=_status(model.status),
        limit=Limit(
            context=_whole(limit.context),
            output=_whole(limit.output),
            input=None if limit.input is None else _whole(limit.input),
        ),
        input=takes,
        output=_modalities(modalities.output if modalities else ()),
        attachment=model.attachment if model.attachment is not None else len(takes) > 1,
        reasoning=bool(model.reasoning),
        temperature=model.temperature is not False,
        tool_call=model.tool_call is not False,
        reasoning_field=_reasoning_field(model.interleaved),
        prices=prices(model.cost),
        settings=ingest.partition(npm, model.options, model.headers),
        variants=_variants(npm, id, model, _whole(limit.output)),
    )


def prices(cost: CostEntry | None) -> Prices | None:
    """The prices, None when there are none. Beside tiers, `context_over_200k` only repeats one of them."""
    if cost is None:
        return None
    tiers = [
        Tier(above=_whole(tier.tier.size), price=_price(tier))
        for tier in cost.tiers
        if tier.tier is not None and tier.tier.type == "context"
    ]
    if not tiers and cost.context_over_200k is not None:
        tiers = [Tier(above=OVER_200K, price=_price(cost.context_over_200k))]
    return Prices(base=_price(cost), tiers=tuple(sorted(tiers, key=lambda tier: tier.above)))


def _price(cost: CostEntry | TierEntry) -> Price:
    return Price(
        input=cost.input, output=cost.output, cache_read=cost.cache_read, cache_write=cost.cache_write
    )


def _variants(npm: str, id: str, model: ModelEntry, output_limit: int) -> dict[str, Settings]:
    found = variants.defaults(
        npm,
        model.id or id,
        reasoning=bool(model.reasoning),
        output_limit=output_limit,
        options=model.reasoning_options,
    )
    for name, options in model.variants.items():
        if options.get("disabled") is True:
            found.pop(name, None)
            continue
        given: JsonMap = {key: value for key, value in options.items() if key != "disabled"}
        found[name] = overlay(found.get(name, Settings()), ingest.partition(npm, given))
    return found


def _whole(number: Num) -> int:
    return max(0, int(number))


def _modalities(words: tuple[str, ...]) -> frozenset[Modality]:
    found = frozenset(cast("Modality", word) for word in words if word in MODALITIES)
    return found or frozenset({"text"})


def _status(word: str | None) -> Literal["alpha", "beta", "active", "deprecated"]:
    match word:
        case "alpha" | "beta" | "deprecated":
            return word
        case _:
            return "active"


def _reasoning_field(interleaved: bool | str | InterleavedEntry | None) -> str | None:  # noqa: FBT001 - the file's shape
    match interleaved:
        case InterleavedEntry(field=field):
            return field
        case str() as field if field:
            return field
        case _:
            return None

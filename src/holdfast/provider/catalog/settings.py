"""Puts settings over one another: the model's own, then the variant's, then the agent's. Pure."""

from typing import Any

from holdfast.errors import InvalidInput
from holdfast.provider.catalog.model import Model, Settings
from holdfast.schema.wire import JsonMap

NO_VARIANT = "default"
"""The variant that stands for none."""


def overlay(base: Settings, over: Settings) -> Settings:
    """`over` wins, key by key; objects are merged, anything else is replaced."""
    return Settings(
        controls=base.controls | over.controls,
        options=merged(base.options, over.options),
        body=merged(base.body, over.body),
        headers=base.headers | over.headers,
    )


def merged(base: JsonMap, over: JsonMap) -> JsonMap:
    """Two JSON objects as one, deeply."""
    result: JsonMap = dict(base)
    for name, value in over.items():
        old: Any = result.get(name)
        result[name] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def select(model: Model, variant: str | None) -> Settings:
    """The settings of a model under a variant. One that does not exist is an error."""
    if variant is None or variant == NO_VARIANT:
        return model.settings
    chosen = model.variants.get(variant)
    if chosen is None:
        known = ", ".join(model.variants) or "none"
        raise InvalidInput(
            f"{model.provider_id}/{model.id} has no variant {variant!r}; it has: {known}, or {NO_VARIANT}"
        )
    return overlay(model.settings, chosen)

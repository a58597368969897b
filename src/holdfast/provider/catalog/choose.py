"""Which model is taken when none was named. Pure; only an order among models that can be used."""

import re
from collections.abc import Iterable

from holdfast.provider.catalog.model import Model

# The families that carry an agent well, first the best; a model of no such family comes after them.
FAMILIES = (
    *("claude-sonnet", "claude-opus", "claude-haiku", "gpt-", "gemini-", "grok-", "mistral-large"),
    *("devstral", "mistral-medium", "kimi-", "glm-", "deepseek-", "qwen"),
)
SMALL = re.compile(r"haiku|flash|(?<![a-z])(?:nano|mini|lite|small)(?![a-z])|(?<![a-z\d])\d{1,2}b(?![a-z])")
SPECIAL = re.compile(
    r"deep-research|image|audio|-chat|preview|gpt-.*-pro|search|cyber|-fast|-exp|beta|:free|agent|non-reasoning"
)
# A date and a size in billions are no versions.
NO_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}|\d{4,}|\d+b(?![a-z])")
# 4.20 came before 4.7: what has a point is one number.
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def best(models: Iterable[Model]) -> Model | None:
    """The model to talk to."""
    return max(models, key=_order, default=None)


def smallest(models: Iterable[Model]) -> Model | None:
    """A quick and cheap one for titles and summaries; None where the provider has none."""
    small = [
        model for model in models if SMALL.search(model.id) and model.status == "active" and model.prices
    ]
    return max(small, key=lambda model: (_family(model), _version(model), -_dollars(model)), default=None)


def _order(model: Model) -> tuple[object, ...]:
    return (
        model.tool_call,
        model.status == "active",
        not SMALL.search(model.id),
        not SPECIAL.search(model.id),
        _family(model),
        _version(model),
        model.release_date,
        -len(model.id),
        model.id,
    )


def _family(model: Model) -> int:
    name = model.id.rpartition("/")[2]
    return next((len(FAMILIES) - rank for rank, word in enumerate(FAMILIES) if name.startswith(word)), 0)


def _version(model: Model) -> list[float]:
    name = NO_VERSION.sub("", model.id.rpartition("/")[2])
    return [float(number) for number in NUMBER.findall(name)]


def _dollars(model: Model) -> float:
    return float(model.prices.base.input + model.prices.base.output) if model.prices else 0.0

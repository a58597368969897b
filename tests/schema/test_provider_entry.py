"""Provider entries of the settings: OpenCode's shape, read leniently."""

from decimal import Decimal
from typing import Any

import pytest

from holdfast.schema import provider_entry
from holdfast.schema.provider_entry import (
    ApiEntry,
    CostEntry,
    InterleavedEntry,
    LimitEntry,
    ModelEntry,
    ProviderEntry,
    TierEntry,
)

FULL: dict[str, Any] = {
    "npm": "@ai-sdk/openai-compatible",
    "name": "Mine",
    "env": ["MINE_KEY"],
    "whitelist": ["m"],
    "options": {"baseURL": "https://x", "apiKey": "sk-secret", "anything": {"goes": 1}},
    "models": {
        "m": {
            "id": "wire-name",
            "tool_call": True,
            "interleaved": {"field": "reasoning_content"},
            "cost": {
                "input": 0.1,
                "output": 2,
                "cache_read": 0.01,
                "context_over_200k": {"input": 0.2, "output": 4},
            },
            "limit": {"context": 128000, "output": 8192.0},
            "provider": {"npm": "@ai-sdk/openai"},
            "options": {"reasoningEffort": "low"},
            "variants": {"high": {"disabled": True}},
            "a_key_of_next_year": True,
        }
    },
    "another": [1],
}


def test_the_whole_shape_is_read() -> None:
    """Prices are exact decimals, options are kept as they are, unknown keys harm nothing."""
    model = ModelEntry(
        id="wire-name",
        tool_call=True,
        interleaved=InterleavedEntry(field="reasoning_content"),
        cost=CostEntry(
            input=Decimal("0.1"),
            output=Decimal(2),
            cache_read=Decimal("0.01"),
            context_over_200k=TierEntry(input=Decimal("0.2"), output=Decimal(4)),
        ),
        limit=LimitEntry(context=128000, output=8192.0),
        provider=ApiEntry(npm="@ai-sdk/openai"),
        options={"reasoningEffort": "low"},
        variants={"high": {"disabled": True}},
    )
    expected = ProviderEntry(
        npm="@ai-sdk/openai-compatible",
        name="Mine",
        env=("MINE_KEY",),
        whitelist=("m",),
        options=FULL["options"],
        models={"m": model},
    )
    assert provider_entry.read({"mine": FULL}) == ({"mine": expected}, ())


def test_an_entry_of_the_wrong_shape_is_left_out_and_told() -> None:
    """The others stay; the line names the place and shows no value."""
    found, problems = provider_entry.read({"bad": {"options": "sk-secret"}, "good": {}})
    assert found == {"good": ProviderEntry()}
    assert problems == (
        "the provider entry 'bad' is left out: Expected `object`, got `str` - at `$.options`",
    )


@pytest.mark.parametrize("interleaved", [True, "reasoning", {"field": "x"}])
def test_every_form_of_interleaved_is_taken(interleaved: object) -> None:
    """A switch, a field's name, or an object with it."""
    found, problems = provider_entry.read({"p": {"models": {"m": {"interleaved": interleaved}}}})
    assert not problems
    assert found["p"].models["m"].interleaved is not None


def test_no_key_is_in_a_repr() -> None:
    """The names of options are shown, their values are not."""
    assert "sk-secret" not in repr(provider_entry.read({"mine": FULL}))

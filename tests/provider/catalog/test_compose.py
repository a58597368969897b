"""A Model out of the catalogue's record and the settings' entry."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from holdfast.provider.catalog.compose import combine, compose, prices
from holdfast.provider.catalog.model import Limit, Model, Price, Prices, Settings, Tier, WireKind
from holdfast.schema.provider_entry import CostEntry, ModelEntry


def entry(**fields: Any) -> ModelEntry:
    return msgspec.convert(fields, ModelEntry)


def test_what_nobody_said_stays_unknown() -> None:
    """No limit, no price; text in and out, tools, and a temperature."""
    assert compose("p", "m", ModelEntry(), npm="@ai-sdk/openai-compatible") == Model(
        provider_id="p",
        id="m",
        api_id="m",
        name="m",
        wire=WireKind.OPENAI_CHAT,
        npm="@ai-sdk/openai-compatible",
    )


def test_everything_that_is_said_is_taken() -> None:
    """Words that we do not know are dropped, negative limits are none."""
    full = entry(
        id="wire",
        name="Name",
        family="f",
        release_date="2026-01-01",
        status="beta",
        limit={"context": -5, "output": 10, "input": 7},
        modalities={"input": ["text", "image", "smell"], "output": ["text"]},
        reasoning=True,
        temperature=False,
        tool_call=False,
        interleaved={"field": "reasoning_details"},
        cost={"input": 1, "output": 2},
        options={"user": "u"},
        headers={"x": "y"},
        reasoning_options=[],
    )
    assert compose("p", "m", full, npm="@ai-sdk/openai-compatible") == Model(
        provider_id="p",
        id="m",
        api_id="wire",
        name="Name",
        wire=WireKind.OPENAI_CHAT,
        npm="@ai-sdk/openai-compatible",
        family="f",
        release_date="2026-01-01",
        status="beta",
        limit=Limit(context=0, output=10, input=7),
        input=frozenset({"text", "image"}),
        attachment=True,
        reasoning=True,
        temperature=False,
        tool_call=False,
        reasoning_field="reasoning_details",
        prices=Prices(base=Price(input=Decimal(1), output=Decimal(2))),
        settings=Settings(options={"user": "u"}, headers={"x": "y"}),
    )


@pytest.mark.parametrize(
    ("interleaved", "field"), [(True, None), (False, None), ("reasoning", "reasoning"), ({"field": "x"}, "x")]
)
def test_the_field_of_thinking(interleaved: object, field: str | None) -> None:
    """Named by a text or an object; a mere switch names none."""
    model = compose("p", "m", entry(interleaved=interleaved), npm="@ai-sdk/openai-compatible")
    assert model.reasoning_field == field


def test_the_settings_win_field_by_field() -> None:
    """What they leave out stays; `false` is said, options are joined."""
    record = entry(
        name="old",
        tool_call=True,
        limit={"context": 100, "output": 10, "input": 90},
        options={"a": 1, "b": 2},
        provider={"npm": "n", "api": "u"},
    )
    over = entry(tool_call=False, limit={"context": 50}, options={"b": 3}, provider={"api": "v"})
    assert combine(record, over) == entry(
        name="old",
        tool_call=False,
        limit={"context": 50, "output": 10, "input": 90},
        options={"a": 1, "b": 3},
        provider={"npm": "n", "api": "v"},
    )
    assert combine(record, None) == combine(None, record) == record
    assert combine(None, None) == ModelEntry()


def cost(**fields: Any) -> CostEntry:
    return msgspec.convert({"input": 1, "output": 2} | fields, CostEntry)


def test_prices_of_long_requests() -> None:
    """Tiers by the length of the request, in order; `context_over_200k` only where there are none."""
    over = {"input": 3, "output": 4}
    tiers = [
        {"input": 7, "output": 8, "tier": {"size": 500}},
        {"input": 5, "output": 6, "tier": {"type": "context", "size": 300}},
        {"input": 9, "output": 9, "tier": {"type": "weekday", "size": 1}},
    ]
    base = Price(input=Decimal(1), output=Decimal(2))
    one, two, three = (
        Price(input=Decimal(into), output=Decimal(out)) for into, out in [(3, 4), (5, 6), (7, 8)]
    )
    assert prices(None) is None
    assert prices(cost()) == Prices(base=base)
    assert prices(cost(context_over_200k=over)) == Prices(base=base, tiers=(Tier(above=200_000, price=one),))
    assert prices(cost(context_over_200k=over, tiers=tiers)) == Prices(
        base=base, tiers=(Tier(above=300, price=two), Tier(above=500, price=three))
    )

"""What models.dev publishes, read: what is kept, what is left out, and modes."""

import json
from decimal import Decimal
from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.provider.catalog import models_dev
from holdfast.provider.catalog.snapshot import Place
from holdfast.schema.provider_entry import CostEntry, ModalitiesEntry, ModelEntry, TierEntry, TierSize

TEXT = {"input": ["text"], "output": ["text"]}


def read(**models: dict[str, Any]) -> dict[str, ModelEntry]:
    named = {id: {"id": id, "modalities": TEXT} | model for id, model in models.items()}
    provider = {"id": "p", "name": "P", "npm": "x", "env": ["K"], "doc": "…", "models": named}
    found = models_dev.read(json.dumps({"p": provider}).encode())
    assert found["p"][0] == Place(name="P", npm="x", env=("K",))
    return found["p"][1]


@pytest.mark.parametrize(
    "data", [b"", b"<html>", b"[]", b"{}", b'{"p": 1}', b'{"p": {"name": "P", "npm": "x"}}']
)
def test_what_is_no_catalogue_is_refused(data: bytes) -> None:
    """An error page or an empty object must not replace good data."""
    with pytest.raises(InvalidInput, match=r"not the JSON of models\.dev"):
        models_dev.read(data)


def test_one_model_that_cannot_be_read_is_left_out() -> None:
    """The others are kept; unknown fields harm nothing."""
    assert list(read(good={"new_field": 1}, bad={"limit": "big"})) == ["good"]


def test_only_models_that_talk_are_kept() -> None:
    """Text goes in and text comes out; what embeds or transcribes is left out by its name."""
    image = {"input": ["text"], "output": ["image"]}
    heard = {"input": ["audio"], "output": ["text"]}
    found = read(
        talks={},
        draws={"modalities": image},
        hears={"modalities": heard},
        **{"text-embedding": {}, "x-tts": {}},
    )
    assert list(found) == ["talks"]


def test_defaults_are_not_repeated_and_floats_dusted() -> None:
    """A record holds what differs; a price is what somebody wrote before it passed through floats."""
    full = {
        "name": "M",
        "attachment": False,
        "reasoning": False,
        "temperature": True,
        "tool_call": True,
        "open_weights": True,
        "cost": {"input": 0.049999999999999996, "output": 10, "reasoning": 99},
    }
    picture = {"input": ["text", "image"], "output": ["text"]}
    assert read(m=full, n={"tool_call": False, "modalities": picture}) == {
        "m": ModelEntry(name="M", cost=CostEntry(input=Decimal("0.05"), output=Decimal(10))),
        "n": ModelEntry(
            tool_call=False, modalities=ModalitiesEntry(input=("text", "image"), output=("text",))
        ),
    }


def test_prices_of_long_requests_become_tiers() -> None:
    """Stated tiers count; without them `context_over_200k` is one."""
    over = {"input": 2, "output": 4}
    stated = over | {"tier": {"type": "context", "size": 272_000}}
    found = read(
        both={"cost": {"input": 1, "output": 2, "context_over_200k": over, "tiers": [stated]}},
        old={"cost": {"input": 1, "output": 2, "context_over_200k": over}},
    )
    sizes = {id: model.cost.tiers[0].tier for id, model in found.items() if model.cost}
    assert sizes == {"both": TierSize(size=272_000), "old": TierSize(size=200_000)}
    assert found["old"].cost is not None
    assert found["old"].cost.tiers == (
        TierEntry(input=Decimal(2), output=Decimal(4), tier=TierSize(size=200_000)),
    )


def test_a_mode_is_a_model_of_its_own() -> None:
    """With the fields that ask for it and its own price; without a price it has none."""
    fast = {
        "cost": {"input": 30, "output": 150},
        "provider": {"body": {"speed": "fast"}, "headers": {"x-beta": "fast"}},
    }
    found = read(
        m={
            "name": "M",
            "cost": {"input": 5, "output": 25},
            "experimental": {"modes": {"fast": fast, "slow": {}}},
        }
    )
    assert found["m-fast"] == ModelEntry(
        id="m",
        name="M (fast)",
        cost=CostEntry(input=Decimal(30), output=Decimal(150)),
        options={"speed": "fast"},
        headers={"x-beta": "fast"},
    )
    assert found["m-slow"] == ModelEntry(id="m", name="M (slow)")
    assert found["m"].experimental is None

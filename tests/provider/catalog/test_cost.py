"""Cost: hand-computed cases, and what makes it unknown."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.provider.catalog import cost
from holdfast.provider.catalog.cost import UNKNOWN, Cost
from holdfast.provider.catalog.model import Price, Prices, Tier
from holdfast.schema.usage import CacheTokens, Tokens


def tokens(
    input: float = 0, output: float = 0, reasoning: float = 0, read: float = 0, write: float = 0
) -> Tokens:
    return Tokens(input=input, output=output, reasoning=reasoning, cache=CacheTokens(read=read, write=write))


def price(input: str, output: str, read: str | None = None, write: str | None = None) -> Price:
    return Price(
        input=Decimal(input),
        output=Decimal(output),
        cache_read=None if read is None else Decimal(read),
        cache_write=None if write is None else Decimal(write),
    )


FULL = price("3", "15", "0.3", "3.75")
TIERED = Prices(
    base=FULL,
    tiers=(
        Tier(above=200_000, price=price("6", "22.5", "0.6", "7.5")),
        Tier(above=500_000, price=price("12", "45")),
    ),
)
FREE = Prices(base=price("0", "0"))

CASES = {
    "nothing": (tokens(), Prices(base=FULL), "0"),
    "input and output": (tokens(input=1_000, output=500), Prices(base=FULL), "0.0105"),
    "reasoning at the output rate": (tokens(output=100, reasoning=900), Prices(base=FULL), "0.015"),
    "cache": (tokens(input=10, read=100_000, write=2_000), Prices(base=FULL), "0.03753"),
    "at the tier's edge": (tokens(input=100_000, read=100_000), TIERED, "0.33"),
    "one above it": (tokens(input=100_001, read=100_000), TIERED, "0.660006"),
    "cache writes count towards it": (tokens(write=200_001), TIERED, "1.5000075"),
    "output does not": (tokens(output=300_000), TIERED, "4.5"),
    "the largest that is exceeded": (tokens(input=600_000, output=1), TIERED, "7.200045"),
    "no float error": (tokens(input=3), Prices(base=price("0.1", "0")), "0.0000003"),
    "a free model's cache is free": (tokens(input=9, read=9, write=9), FREE, "0"),
    "nonsense counts as nothing": (
        tokens(input=float("nan"), output=-5, reasoning=float("inf"), read=float("-inf")),
        Prices(base=FULL),
        "0",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_cost_of_tokens(case: str) -> None:
    """Each case gives the sum that was worked out by hand."""
    used, prices, expected = CASES[case]
    assert cost.cost(used, prices) == Cost(amount=Decimal(expected), known=True)


@pytest.mark.parametrize(
    ("used", "prices"),
    [
        (tokens(input=1), None),
        (tokens(), None),
        (tokens(read=1), Prices(base=price("3", "15"))),
        (tokens(write=1), Prices(base=price("3", "15", "0.3"))),
        (tokens(input=600_000, read=1), TIERED),
        (tokens(input=1), Prices(base=price("inf", "1"))),
    ],
)
def test_a_price_that_nobody_stated_makes_the_cost_unknown(used: Tokens, prices: Prices | None) -> None:
    """Unknown is not free: no prices, no price of a cache that was used, none in the tier that counts."""
    assert cost.cost(used, prices) == UNKNOWN


def test_a_price_that_is_not_needed_may_be_unknown() -> None:
    """No cache was used, so its price does not matter."""
    known = cost.cost(tokens(input=1_000_000), Prices(base=price("3", "15")))
    assert known == Cost(amount=Decimal(3), known=True)


NUMBERS = st.one_of(st.integers(-5, 2_000_000), st.floats())
RATES = st.decimals(allow_nan=False, allow_infinity=False, min_value=-5, max_value=1000, places=6)


@given(st.lists(NUMBERS, min_size=5, max_size=5), RATES, RATES)
def test_a_cost_is_finite_and_not_negative(counts: list[float], into: Decimal, out: Decimal) -> None:
    """Whatever a provider reports and a file says."""
    prices = Prices(base=Price(input=into, output=out, cache_read=into, cache_write=out))
    found = cost.cost(tokens(*counts), prices)
    assert found.amount.is_finite()
    assert found.amount >= 0

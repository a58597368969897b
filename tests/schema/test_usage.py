"""Adding up tokens."""

from holdfast.schema import usage
from holdfast.schema.usage import ZERO, CacheTokens, Tokens

ONE = Tokens(total=15, input=1, output=2, reasoning=3, cache=CacheTokens(read=4, write=5))
TWO = Tokens(total=150, input=10, output=20, reasoning=30, cache=CacheTokens(read=40, write=50))


def test_add_sums_every_count() -> None:
    """Integers stay integers."""
    total = usage.add(ONE, TWO)

    assert total == Tokens(total=165, input=11, output=22, reasoning=33, cache=CacheTokens(read=44, write=55))
    assert isinstance(total.input, int)


def test_a_sum_has_a_total_only_if_both_have() -> None:
    """The total of a part would be read as that of the whole."""
    assert usage.add(ZERO, ONE).total is None
    assert usage.add(ONE, ZERO).total is None


def test_subtract_takes_away() -> None:
    """It is the inverse of add, and may go below zero."""
    assert usage.subtract(usage.add(ONE, TWO), TWO) == ONE
    assert usage.subtract(ZERO, TWO).input == -10

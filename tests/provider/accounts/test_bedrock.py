"""Amazon Bedrock's rules, which are pure, and its refusal."""

from decimal import Decimal
from typing import Any

import pytest

from holdfast.provider.accounts import bedrock
from holdfast.provider.catalog import cost
from holdfast.provider.catalog.cost import Cost
from holdfast.provider.catalog.model import Price, Prices
from holdfast.schema.usage import CacheTokens, Tokens


def test_usage_is_disjoint_as_it_comes() -> None:
    """Its input leaves the cached tokens out already, so nothing is subtracted."""
    reported = {
        "inputTokens": 10,
        "outputTokens": 20,
        "totalTokens": 1_330,
        "cacheReadInputTokens": 1_000,
        "cacheWriteInputTokens": 300,
    }
    found = bedrock.usage(reported)
    assert found == Tokens(
        total=1_330, input=10, output=20, reasoning=0, cache=CacheTokens(read=1_000, write=300)
    )
    price = Price(
        input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75")
    )
    assert cost.cost(found, Prices(base=price)) == Cost(amount=Decimal("0.001755"), known=True)


@pytest.mark.parametrize("reported", [{}, {"inputTokens": None, "outputTokens": "many"}, {"inputTokens": -4}])
def test_usage_that_is_missing_or_nonsense_counts_as_nothing(reported: dict[str, Any]) -> None:
    """A step that finished is not lost over its bill."""
    nothing = Tokens(input=0, output=0, reasoning=0, cache=CacheTokens(read=0, write=0))
    assert bedrock.usage(reported) == nothing


def test_a_cache_mark_is_an_item_after_the_last() -> None:
    """Once, and never alone: an empty block gets none. What was given is not changed."""
    content = [{"text": "a"}, {"text": "b"}]
    marked = bedrock.with_cache_mark(content)
    assert marked == [{"text": "a"}, {"text": "b"}, {"cachePoint": {"type": "default"}}]
    assert bedrock.with_cache_mark(marked) == marked
    assert bedrock.with_cache_mark([]) == []
    assert content == [{"text": "a"}, {"text": "b"}]


def test_it_says_by_name_that_it_is_not_supported() -> None:
    """No silence and no other provider in its place."""
    error = bedrock.refusal("amazon-bedrock")

    assert str(error).startswith("amazon-bedrock: Amazon Bedrock is not supported yet")
    assert (error.kind, error.retryable) == ("unsupported", False)

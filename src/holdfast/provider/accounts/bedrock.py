"""Amazon Bedrock: how it counts tokens and where it takes cache marks. There is no wire for it yet. Pure.

Bedrock's Converse API reports `inputTokens` without the cached ones, unlike most others, and a cache mark is
a content item of its own (`cachePoint`) after the last item that belongs to the prefix.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import ProviderError
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.schema.wire import JsonMap, Num

CACHE_POINT: JsonMap = {"cachePoint": {"type": "default"}}


def usage(reported: Mapping[str, Any]) -> Tokens:
    """The `usage` of a Converse answer as disjoint counts. Reasoning is inside the output there."""
    total = reported.get("totalTokens")
    return Tokens(
        input=_count(reported.get("inputTokens")),
        output=_count(reported.get("outputTokens")),
        reasoning=0,
        cache=CacheTokens(
            read=_count(reported.get("cacheReadInputTokens")),
            write=_count(reported.get("cacheWriteInputTokens")),
        ),
        total=_count(total) if total is not None else None,
    )


def with_cache_mark(content: Sequence[JsonMap]) -> list[JsonMap]:
    """The content of a block with a mark after its last item; marked once, and never an empty one."""
    items = list(content)
    if not items or "cachePoint" in items[-1]:
        return items
    return [*items, CACHE_POINT]


def refusal(provider_id: str) -> ProviderError:
    """What is said, by name, in the place of an answer."""
    return ProviderError(
        f"{provider_id}: Amazon Bedrock is not supported yet; use the model through another provider",
        kind="unsupported",
    )


def _count(number: Any) -> Num:
    good = isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < float("inf")
    return number if good else 0

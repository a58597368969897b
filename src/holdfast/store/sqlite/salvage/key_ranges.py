"""Which numbers lie in any of many ranges. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


def within(numbers: Iterable[int], ranges: Iterable[tuple[int, int]]) -> set[int]:
    """The numbers that lie in a range, its ends included."""
    ordered = sorted(numbers)
    found: set[int] = set()
    begin = 0
    for low, high in sorted(ranges):
        # Ranges may lie in one another: each number is taken once, so the work is that of sorting.
        begin = bisect_left(ordered, low, begin)
        end = bisect_right(ordered, high, begin)
        found.update(ordered[begin:end])
        begin = end
    return found

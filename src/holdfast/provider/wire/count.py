"""Counts of tokens as servers write them: whole numbers, mostly. Pure.

What must stay true: what comes out is neither negative nor beyond all sense, and the parts of a whole do not
exceed it: the counts of `Tokens` are disjoint.
"""

from typing import Final

Count = int | float | None
"""A count on the wire. Some servers compute with fractions, and some leave it out."""

COUNT_MAX: Final = 10**12


def whole(count: Count) -> int:
    """The count as a whole number; none is 0."""
    return 0 if not count or count < 0 else int(min(count, COUNT_MAX))


def total(count: Count) -> int | None:
    """A total as a whole number, or None where the server reports none."""
    return None if count is None else whole(count)


def parts(count: Count, *parts: Count) -> tuple[int, ...]:
    """What is left of a whole without its parts, then the parts, the earlier first where they exceed it."""
    left = whole(count)
    taken = []
    for part in parts:
        taken.append(min(whole(part), left))
        left -= taken[-1]
    return left, *taken

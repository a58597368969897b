"""Tells how far a longer history is the one that was seen before. Pure."""

from collections.abc import Sequence
from operator import is_


def common(before: Sequence[object], after: Sequence[object]) -> int:
    """How many of the very same objects two sequences begin with."""
    same = enumerate(map(is_, before, after))
    return next((index for index, is_same in same if not is_same), min(len(before), len(after)))

"""Replaces one piece of a text, or each of them: the first strategy that finds it without a doubt decides.

What must stay true: what is replaced is found at one place only, unless all of them are wanted: a strategy
that finds several, equal or not, decides nothing. A loose match never takes much more than was asked for.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Literal

import msgspec

from holdfast.tools.replace.effort import TooCostly
from holdfast.tools.replace.lines import Lines
from holdfast.tools.replace.strategies import STRATEGIES

LINES_MORE, LINES_TIMES = 3, 2
CHARS_MORE, CHARS_TIMES = 500, 4
PLACES_MAX = 10
PIECES_MAX = 100
"""Of what one strategy finds: two are a doubt already."""


class Replaced(msgspec.Struct, frozen=True):
    """The text afterwards."""

    text: str
    old: str
    """What was replaced, as it stood there."""
    count: int


class NotReplaced(msgspec.Struct, frozen=True):
    """Why nothing was replaced, and where it may have been meant: line numbers from 1."""

    why: Literal["missing", "ambiguous", "too large", "too costly"]
    lines: tuple[int, ...] = ()


def replace(text: str, old: str, new: str, *, everywhere: bool = False) -> Replaced | NotReplaced:
    """Replace `old`, which is not empty, by `new`."""
    lines = Lines(text)
    several: tuple[int, ...] = ()
    large: tuple[int, ...] = ()
    for strategy in STRATEGIES:
        try:
            pieces = list(dict.fromkeys(islice(strategy(lines, old), PIECES_MAX)))
        except TooCostly:
            return NotReplaced("too costly")
        for found in pieces:
            places = _places(text, pieces if found != old and not everywhere else [found])
            if len(places) > 1 and not everywhere:
                if found == old:
                    return NotReplaced("ambiguous", places)
                several = several or places
                break
            if _too_large(found, old):
                large = large or places
                continue
            return Replaced(text.replace(found, new), found, text.count(found))
    if several:
        return NotReplaced("ambiguous", several)
    return NotReplaced("too large", large) if large else NotReplaced("missing")


def _too_large(found: str, old: str) -> bool:
    """Whether a match is out of proportion to what was asked for."""
    if found == old:
        return False
    lines, wanted = found.count("\n") + 1, old.count("\n") + 1
    if lines >= max(wanted + LINES_MORE, LINES_TIMES * wanted):
        return True
    size, asked = len(found.strip()), len(old.strip())
    return wanted > 1 and size > max(asked + CHARS_MORE, CHARS_TIMES * asked)


def _places(text: str, pieces: Sequence[str]) -> tuple[int, ...]:
    """The lines at which the pieces begin; one within another is the same place."""
    spans: list[tuple[int, int]] = []
    for piece in pieces:
        at = text.find(piece)
        while at >= 0 and len(spans) < PLACES_MAX:
            end = at + len(piece)
            if not any(
                (at >= start and end <= stop) or (at <= start and end >= stop) for start, stop in spans
            ):
                spans.append((at, end))
            at = text.find(piece, at + 1)
    return tuple(text.count("\n", 0, start) + 1 for start, _ in sorted(spans))

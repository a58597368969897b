"""Lays a table out for a terminal: what must be copied stays whole, what does not fit is left out. Pure."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

GAP: Final = 2
STRETCH_MIN: Final = 16
"""How narrow the column that gives way may become before another one is left out."""


class Table(msgspec.Struct, frozen=True):
    """The lines, heads first, and the heads of the columns that had no room."""

    lines: list[str]
    left_out: list[str]


def laid_out(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    room: int,
    whole: Collection[int] = (0,),
    stretch: int | None = None,
) -> Table:
    """Columns as wide as they must be. Where they are too wide together, the column `stretch` gives way, then
    columns are left out from the right. Those in `whole` (ids, names) are neither cut nor left out.
    """
    cells = [heads, *rows]
    widths = [max(width_of(row[column]) for row in cells) for column in range(len(heads))]
    least = [min(wide, STRETCH_MIN) if column == stretch else wide for column, wide in enumerate(widths)]
    shown = list(range(len(heads)))
    while _total([least[column] for column in shown]) > room:
        droppable = [column for column in shown if column not in whole]
        if not droppable:
            break
        shown.remove(droppable[-1])
    if stretch in shown:
        others = _total([widths[column] for column in shown]) - widths[stretch]
        widths[stretch] = max(least[stretch], min(widths[stretch], room - others))
    lines = [
        (" " * GAP).join(_filled(row[column], widths[column]) for column in shown).rstrip() for row in cells
    ]
    return Table(lines, [head for column, head in enumerate(heads) if column not in shown])


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _filled(cell: str, wide: int) -> str:
    text = cut(cell, wide)
    return text + " " * (wide - width_of(text))


def width_of(text: str) -> int:
    """How many columns a terminal needs for a text: some signs take two, some none."""
    return len(text) if text.isascii() else sum(map(_sign_width, text))


def cut(text: str, wide: int) -> str:
    """Text that fits."""
    if width_of(text) <= wide:
        return text
    taken, kept = 1, []
    for sign in text:
        taken += _sign_width(sign)
        if taken > wide:
            break
        kept.append(sign)
    return "".join(kept) + "…"


def _sign_width(sign: str) -> int:
    import unicodedata

    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1

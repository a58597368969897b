"""Applies the hunks of a patch to a text.

What must stay true: hunks are found in their order, each behind the one before; one that is not found changes
nothing at all.
"""

import unicodedata
from collections.abc import Callable, Sequence

import msgspec

from holdfast.tools.patch.section import Hunk
from holdfast.tools.replace.lines import windows

_PUNCTUATION = {
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"'),
    **dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2009\u202f\u3000"), " "),
    ord("\u2026"): "...",
}


def _plain(line: str) -> str:
    """Without what a model writes as plain ASCII: typographic quotes, dashes and blanks."""
    return unicodedata.normalize("NFC", line).translate(_PUNCTUATION).strip()


_WAYS: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip, _plain)
"""The strictest first."""


class Unmatched(msgspec.Struct, frozen=True):
    """The hunk that was not found. `context`: it is the line behind its `@@` that does not stand there."""

    hunk: Hunk
    behind: int
    """It was looked for behind so many lines."""
    context: bool = False


def apply(text: str, hunks: Sequence[Hunk]) -> str | Unmatched:
    """The text with every hunk applied; it ends with a line feed. Line ends are line feeds here."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    changed: list[str] = []
    at = 0
    for hunk in hunks:
        found = _find(lines, hunk, at)
        if isinstance(found, Unmatched):
            return found
        start, count, after = found
        changed += [*lines[at:start], *after]
        at = start + count
    changed += lines[at:]
    return "".join(f"{line}\n" for line in changed)


def _find(lines: list[str], hunk: Hunk, at: int) -> tuple[int, int, tuple[str, ...]] | Unmatched:
    """Where the lines of a hunk begin, how many they are, and what takes their place."""
    behind = at
    if hunk.context is not None:
        place = _seek(lines, (hunk.context,), at)
        if place is None:
            return Unmatched(hunk, behind, context=True)
        # The line may be the hunk's own first one.
        own = hunk.before[:1] and _plain(hunk.before[0]) == _plain(hunk.context)
        at = place if own else place + 1
    before = hunk.before
    if not before:
        where = at if hunk.context is not None and not hunk.at_end else len(lines)
        return where, 0, tuple(text for _, text in hunk.lines)
    start = _seek(lines, before, at, at_end=hunk.at_end)
    if start is None and before[-1] == "" and len(before) > 1:
        # The line feed at the end of a file is often taken for an empty line.
        before = before[:-1]
        start = _seek(lines, before, at, at_end=True)
        start = start if start is not None and start + len(before) == len(lines) else None
    if start is None:
        return Unmatched(hunk, at)
    return start, len(before), _changed(lines[start : start + len(before)], hunk)


def _seek(lines: list[str], wanted: Sequence[str], at: int, *, at_end: bool = False) -> int | None:
    """Where the wanted lines stand, from `at` on; with `at_end`, at the end of the file if they do."""
    last = len(lines) - len(wanted)
    for way in _WAYS:
        keys = [way(line) for line in wanted]
        if at_end and last >= at and [way(line) for line in lines[last:]] == keys:
            return last
        start = next(windows(lines if way is str else [way(line) for line in lines], keys, at), None)
        if start is not None:
            return start
    return None


def _changed(here: list[str], hunk: Hunk) -> tuple[str, ...]:
    """The lines afterwards; unchanged ones stay as they stand in the file, not as the model wrote them."""
    left = iter(here)
    lines: list[str] = []
    for sign, text in hunk.lines:
        if sign == "+":
            lines.append(text)
        elif (standing := next(left, None)) is not None and sign == " ":
            lines.append(standing)
    return tuple(lines)

"""Applies the hunks of a patch to a text.

What must stay true: hunks are found in their order, each behind the one before; one that is not found changes
nothing at all.
"""

import unicodedata
from collections.abc import Callable, Sequence

import msgspec

from holdfast.tools.patch.section import Hunk
from holdfast.tools.replace.effort import Effort, TooCostly
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


LINES_MAX = 10_000_000
"""Lines that are passed for all hunks of a file together: about a second."""


class Unmatched(msgspec.Struct, frozen=True):
    """The hunk that was not found. `context`: it is the line behind its `@@` that does not stand there.
    `costly`: it was not looked for to the end, since so much was passed for those before it.
    """

    hunk: Hunk
    behind: int
    """It was looked for behind so many lines."""
    context: bool = False
    costly: bool = False


def apply(text: str, hunks: Sequence[Hunk]) -> str | Unmatched:
    """The text with every hunk applied; it ends with a line feed. Line ends are line feeds here."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    file = _File(lines)
    changed: list[str] = []
    at = 0
    for hunk in hunks:
        try:
            found = _find(file, hunk, at)
        except TooCostly:
            found = Unmatched(hunk, at, costly=True)
        if isinstance(found, Unmatched):
            return found
        start, count, after = found
        changed += [*lines[at:start], *after]
        at = start + count
    changed += lines[at:]
    return "".join(f"{line}\n" for line in changed)


class _File:
    """The lines of a file, and what each is by the ways to compare them: found out once for all hunks."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.effort = Effort(LINES_MAX)
        self._keys: dict[int, tuple[list[str], dict[str, int]]] = {}

    def keys(self, way: int) -> tuple[list[str], dict[str, int]]:
        """What the lines are by a way, and where each stands for the last time."""
        if way not in self._keys:
            keys = self.lines if way == 0 else [_WAYS[way](line) for line in self.lines]
            self._keys[way] = keys, {key: at for at, key in enumerate(keys)}
        return self._keys[way]

    def seek(self, wanted: Sequence[str], at: int, *, at_end: bool = False) -> int | None:
        """Where the wanted lines stand, from `at` on; with `at_end`, at the end of the file if they do."""
        last = len(self.lines) - len(wanted)
        for number, way in enumerate(_WAYS):
            looked = [way(line) for line in wanted]
            keys, ends = self.keys(number)
            if any(ends.get(key, -1) < at for key in looked):
                continue
            if at_end and last >= at and keys[last:] == looked:
                return last
            start = next(windows(keys, looked, at), None)
            self.effort.spend((len(keys) if start is None else start) - at)
            if start is not None:
                return start
        return None


def _find(file: _File, hunk: Hunk, at: int) -> tuple[int, int, tuple[str, ...]] | Unmatched:
    """Where the lines of a hunk begin, how many they are, and what takes their place."""
    behind = at
    if hunk.context is not None:
        place = file.seek((hunk.context,), at)
        if place is None:
            return Unmatched(hunk, behind, context=True)
        # The line may be the hunk's own first one.
        own = hunk.before[:1] and _plain(hunk.before[0]) == _plain(hunk.context)
        at = place if own else place + 1
    lines, before = file.lines, hunk.before
    if not before:
        where = at if hunk.context is not None and not hunk.at_end else len(lines)
        return where, 0, tuple(text for _, text in hunk.lines)
    start = file.seek(before, at, at_end=hunk.at_end)
    if start is None and before[-1] == "" and len(before) > 1:
        # The line feed at the end of a file is often taken for an empty line.
        before = before[:-1]
        start = file.seek(before, at, at_end=True)
        start = start if start is not None and start + len(before) == len(lines) else None
    if start is None:
        return Unmatched(hunk, at)
    return start, len(before), _changed(lines[start : start + len(before)], hunk)


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

"""The ways to find what a model wants to replace, the strictest first.

Each yields pieces of the text, exactly as they stand there; `TooCostly` where too much is somewhat like it.
Line ends are line feeds here: the caller has converted both sides.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

from holdfast.tools.replace.effort import Effort
from holdfast.tools.replace.lines import Lines, Wanted, windows
from holdfast.tools.replace.similarity import CHARS_MAX, similarity

Strategy = Callable[[Lines, str], Iterator[str]]

LENGTH_SHARE = 0.25
"""By how much a block between two anchors may be longer or shorter than what was asked for."""
ALIKE = 0.65
CONTEXT_SHARE = 0.5
ANCHORS_MIN = 3
"""Two anchors and something between them."""
CANDIDATES_MAX = 200
"""So many places with the right anchors are compared: a text of equal lines has endlessly many."""
WORDS_A_STEP = 16
"""A regular expression passes so many words while we compare one character."""

_RUN = re.compile(r"\s+")
_ESCAPE = re.compile(r"\\(n|t|r|'|\"|`|\\|\n|\$)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\n": "\n"}


def exact(text: Lines, old: str) -> Iterator[str]:
    """As it was written."""
    if old in text.text:
        yield old


def trimmed_lines(text: Lines, old: str) -> Iterator[str]:
    """Lines that are equal without the blanks at their ends."""
    wanted = Wanted(old)
    yield from _equal(text, wanted, str.strip)


def block_anchors(text: Lines, old: str) -> Iterator[str]:
    """A block whose first and last lines are right and whose middle is much alike; the best one."""
    wanted = Wanted(old)
    if len(wanted.lines) < ANCHORS_MIN:
        return
    best: tuple[float, int, int] | None = None
    slack = max(1, int(len(wanted.lines) * LENGTH_SHARE))
    for start, count in _between(text, wanted, slack):
        alike = _alike(text.values[start + 1 : start + count - 1], wanted.lines[1:-1], text.effort)
        if alike >= ALIKE and (best is None or alike > best[0]):
            best = alike, start, count
    if best is not None:
        yield text.span(best[1], best[2], feed=wanted.feed)


def collapsed_blanks(text: Lines, old: str) -> Iterator[str]:
    """Any run of blanks stands for any other: whole lines, a piece of a line, several lines."""
    words = old.split()
    if not words:
        return
    wanted = Wanted(old)
    yield from _equal(text, wanted, _collapsed)
    if "\n" not in old.strip("\n"):
        text.effort.spend(text.text.count(words[0]) * len(words) // WORDS_A_STEP)
        pattern = re.compile(r"[^\S\n]+".join(map(re.escape, words)))
        yield from (match[0] for match in pattern.finditer(text.text))


def other_indent(text: Lines, old: str) -> Iterator[str]:
    """The same lines, all of them indented differently by the same amount."""
    wanted = Wanted(old)
    outdented = _outdented(wanted.lines)
    stripped = [line.strip() for line in text.values]
    for start in windows(stripped, [line.strip() for line in wanted.lines]):
        text.effort.spend(len(outdented))
        if _outdented(text.values[start : start + len(outdented)]) == outdented:
            yield text.span(start, len(outdented), feed=wanted.feed)


def decoded_escapes(text: Lines, old: str) -> Iterator[str]:
    """What was written with escape sequences (a backslash and `n`, `t`, a quote) stands there decoded."""
    decoded = _decoded(old)
    if decoded != old and decoded in text.text:
        yield decoded
    wanted = Wanted(decoded)
    yield from _equal(text, wanted, _decoded)


def trimmed_ends(text: Lines, old: str) -> Iterator[str]:
    """Without the blanks before its first and behind its last character."""
    trimmed = old.strip()
    if trimmed and trimmed != old and trimmed in text.text:
        yield trimmed


def context_anchors(text: Lines, old: str) -> Iterator[str]:
    """As many lines, the first and the last right, and at least half of those between."""
    wanted = Wanted(old)
    if len(wanted.lines) < ANCHORS_MIN:
        return
    for start, count in _between(text, wanted, 0):
        text.effort.spend(count)
        pairs = zip(text.values[start + 1 : start + count - 1], wanted.lines[1:-1], strict=True)
        both = [(here.strip(), there.strip()) for here, there in pairs if here.strip() or there.strip()]
        equal = sum(here == there for here, there in both)
        if not both or equal / len(both) >= CONTEXT_SHARE:
            yield text.span(start, count, feed=wanted.feed)


STRATEGIES: tuple[Strategy, ...] = (
    exact,
    trimmed_lines,
    block_anchors,
    collapsed_blanks,
    other_indent,
    decoded_escapes,
    trimmed_ends,
    context_anchors,
)


def _equal(text: Lines, wanted: Wanted, key: Callable[[str], str]) -> Iterator[str]:
    """Runs of lines that are equal to the wanted ones by a key."""
    keys = [key(line) for line in wanted.lines]
    if not any(keys):
        return  # Blank lines are everywhere.
    for start in windows([key(line) for line in text.values], keys):
        yield text.span(start, len(keys), feed=wanted.feed)


def _between(text: Lines, wanted: Wanted, slack: int) -> Iterator[tuple[int, int]]:
    """Blocks between the wanted first and last lines, of about the wanted length: start and count."""
    first, last, count = wanted.lines[0].strip(), wanted.lines[-1].strip(), len(wanted.lines)
    if not first or not last:
        return
    keys = [line.strip() for line in text.values]
    ends = [at for at, key in enumerate(keys) if key == last]
    least = max(ANCHORS_MIN - 1, count - slack)
    found = 0
    for start in windows(keys, [first]):
        for end in islice(ends, bisect_left(ends, start + least - 1), None):
            if end >= start + count + slack:
                break
            found += 1
            if found > CANDIDATES_MAX:
                return
            yield start, end - start + 1


def _alike(here: list[str], there: list[str], effort: Effort) -> float:
    """How alike two middles are on average; one that lacks lines is compared as far as it goes."""
    count = max(len(here), len(there))
    if count == 0:
        return 1.0
    total = 0.0
    for one, other in zip(here, there, strict=False):
        effort.spend(1 + min(len(other), CHARS_MAX))
        total += similarity(one.strip(), other.strip())
    return total / count


def _collapsed(text: str) -> str:
    return _RUN.sub(" ", text).strip()


def _outdented(lines: list[str]) -> list[str]:
    """The lines without the indent that all of them have."""
    filled = [line for line in lines if line.strip()]
    indents = [line[: len(line) - len(line.lstrip())] for line in filled]
    common = len(min(indents, key=len)) if indents else 0
    for one, other in pairwise(indents):
        while not other.startswith(one[:common]):
            common -= 1
    return [line[common:] if line.strip() else "" for line in lines]


def _decoded(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text)

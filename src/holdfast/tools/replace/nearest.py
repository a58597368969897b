"""The place in a text that is most like what was looked for, for an error that the model can act on."""

import heapq

import msgspec

from holdfast.tools.replace.lines import Lines, Wanted
from holdfast.tools.replace.similarity import similarity

LINES_MAX = 20_000
"""In a longer text only equal lines are looked for: comparing each would take too long."""
SHOWN = 6
WIDTH = 200
ALIKE = 0.5
COMPARED_MAX = 100
"""Lines that are compared letter by letter: those with the most pairs of letters in common."""
VOTES_MAX = 200_000


class Nearest(msgspec.Struct, frozen=True):
    """Where it begins, from line 1, and the lines that differ: number, as it stands, as it was written."""

    line: int
    differing: tuple[tuple[int, str, str], ...]


def nearest(text: str, old: str) -> Nearest | None:
    """The run of lines that has most in common with `old`; None if nothing is like it."""
    lines, wanted = Lines(text), Wanted(old)
    keys = [line.strip() for line in lines.values]
    looked = [line.strip() for line in wanted.lines]
    start = _by_equal_lines(keys, looked)
    if start is None:
        start = _by_likeness(keys, looked)
    if start is None:
        return None
    differing = []
    for offset, written in enumerate(wanted.lines):
        at = start + offset
        here = lines.values[at] if at < len(lines) else ""
        if here != written:
            differing.append((at + 1, here[:WIDTH], written[:WIDTH]))
    return Nearest(start + 1, tuple(differing[:SHOWN]))


def _by_equal_lines(keys: list[str], looked: list[str]) -> int | None:
    """The start at which most lines are equal, but for blanks at their ends."""
    places: dict[str, list[int]] = {}
    for at, key in enumerate(keys):
        if key:
            places.setdefault(key, []).append(at)
    votes: dict[int, int] = {}
    for offset, key in enumerate(looked):
        if len(votes) > VOTES_MAX:
            break
        for at in places.get(key, ())[:1_000]:
            if at >= offset:
                votes[at - offset] = votes.get(at - offset, 0) + 1
    return min(votes, key=lambda start: (-votes[start], start)) if votes else None


def _by_likeness(keys: list[str], looked: list[str]) -> int | None:
    """The start of the line that is most like the first one that was looked for."""
    offset = next((at for at, key in enumerate(looked) if key), None)
    if offset is None or len(keys) > LINES_MAX:
        return None
    wanted = looked[offset][:WIDTH]
    pairs = _pairs(wanted)
    shared = {key[:WIDTH]: at for at, key in reversed(list(enumerate(keys))) if key}
    likely = heapq.nlargest(COMPARED_MAX, shared, key=lambda key: len(pairs & _pairs(key[: WIDTH // 2])))
    alike, at = max(((similarity(key, wanted), -shared[key]) for key in likely), default=(0.0, 0))
    return max(0, -at - offset) if alike >= ALIKE else None


def _pairs(line: str) -> set[str]:
    return {line[at : at + 2] for at in range(max(1, len(line) - 1))}

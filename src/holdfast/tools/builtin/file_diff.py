"""What changed between two texts, as a unified diff, in bounded time."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec

CONTEXT = 3
COMPARED_MAX = 5_000_000
"""Comparisons of lines, about a second: what is not compared by then counts as replaced."""
LINES_MAX = 200_000
"""With more lines between the equal ends, nothing there is compared."""
CHARS_MAX = 200_000
"""How much of a diff is kept: it stands in the record of the call, and in every event of it."""
SHOWN_LINES = 60
WIDTH = 400


class FileDiff(msgspec.Struct, frozen=True):
    """A unified diff and its counts. `text` is its beginning, which lacks `left` lines."""

    text: str
    left: int
    additions: int
    deletions: int

    @property
    def patch(self) -> str:
        """As much as is kept."""
        return f"{self.text}\n{_more(self.left)}" if self.left else self.text

    @property
    def short(self) -> str:
        """As much as the model is shown: the hunks, cut where they are long."""
        lines = [line[:WIDTH] for line in self.text.split("\n")[2:]]
        more = len(lines) - SHOWN_LINES if len(lines) > SHOWN_LINES else 0
        shown = lines[:SHOWN_LINES]
        return "\n".join([*shown, _more(more + self.left)] if more or self.left else shown)


def joined(patches: Iterable[str]) -> str:
    """Some diffs as one, cut like one."""
    kept = _Kept()
    kept.add("", [patch for patch in patches if patch])
    return kept.text if not kept.left else f"{kept.text}\n(… the rest of the diff is not kept)"


def diff(path: str, old: str, new: str) -> FileDiff:
    """The diff of a file's text."""
    before, after = _lines(old), _lines(new)
    additions = deletions = 0
    kept = _Kept()
    kept.add("", [f"--- {path}", f"+++ {path}"])
    for group in _groups(before, after):
        (_, start, _, other, _), (_, _, end, _, other_end) = group[0], group[-1]
        kept.add("", [f"@@ -{_range(start, end)} +{_range(other, other_end)} @@"])
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                kept.add(" ", before[i1:i2])
                continue
            deletions += i2 - i1
            additions += j2 - j1
            kept.add("-", before[i1:i2])
            kept.add("+", after[j1:j2])
    is_changed = additions or deletions
    return FileDiff(kept.text if is_changed else "", kept.left, additions, deletions)


class _Kept:
    """The beginning of a diff, as long as there is room, and the number of lines behind it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._room = CHARS_MAX
        self.left = 0

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def add(self, sign: str, lines: Sequence[str]) -> None:
        """Some lines, each with its sign; the one for which there is no room is cut, and counts as left."""
        taken = 0
        while self._room > 0 and taken < len(lines):
            line = f"{sign}{lines[taken]}"
            self._lines.append(line[: self._room])
            taken += len(line) <= self._room
            self._room -= len(line) + 1
        self.left += len(lines) - taken


def _more(lines: int) -> str:
    return f"(… {lines} more lines of the diff)"


_Change = tuple[str, int, int, int, int]


def _groups(before: list[str], after: list[str]) -> Iterator[list[_Change]]:
    """The changes with some equal lines around them, as difflib groups them."""
    head, tail = _ends(before, after)
    middle, other = before[head : len(before) - tail], after[head : len(after) - tail]
    changes = [("replace", head, head + len(middle), head, head + len(other))]
    if len(middle) + len(other) <= LINES_MAX:
        found = _Bounded(middle, other).get_opcodes()
        changes = [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in found]
    # Equal lines at both ends, as context.
    if head:
        changes.insert(0, ("equal", max(0, head - CONTEXT), head, max(0, head - CONTEXT), head))
    if tail:
        i, j = len(before) - tail, len(after) - tail
        count = min(CONTEXT, tail)
        changes.append(("equal", i, i + count, j, j + count))
    group: list[_Change] = []
    for tag, i1, i2, j1, j2 in changes:
        if tag == "equal" and i2 - i1 > 2 * CONTEXT:
            group.append((tag, i1, i1 + CONTEXT, j1, j1 + CONTEXT))
            if any(each[0] != "equal" for each in group):
                yield group
            group = [(tag, i2 - CONTEXT, i2, j2 - CONTEXT, j2)]
        else:
            group.append((tag, i1, i2, j1, j2))
    if any(each[0] != "equal" for each in group):
        yield group


class _Bounded(difflib.SequenceMatcher[str]):
    """Counts what each look for the longest equal piece will compare: each line with every one equal to it.

    There are as many looks as pieces, so that texts of few different lines take time by their third power.
    """

    def __init__(self, before: list[str], after: list[str]) -> None:
        super().__init__(None, before, after, autojunk=False)
        times = Counter(after)
        self._costs = list(accumulate((1 + times[line] for line in before), initial=0))
        self._left = COMPARED_MAX

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """As difflib finds it; an empty one, which ends the look into this part, where it costs too much."""
        cost = self._costs[len(self._costs) - 1 if ahi is None else ahi] - self._costs[alo]
        if cost > self._left:
            return difflib.Match(alo, blo, 0)
        self._left -= cost
        return super().find_longest_match(alo, ahi, blo, bhi)


def _ends(before: list[str], after: list[str]) -> tuple[int, int]:
    """How many lines are equal at the beginning, and at the end."""
    least = min(len(before), len(after))
    head = 0
    while head < least and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < least - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return head, tail


def _lines(text: str) -> list[str]:
    """The lines; one without a line feed at the end is another than one with."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _range(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}" if count != 1 else f"{start + 1}"

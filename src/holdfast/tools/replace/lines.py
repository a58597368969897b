"""A text as lines with their places."""

from collections.abc import Iterator, Sequence

from holdfast.tools.replace.effort import Effort


class Lines:
    """The lines of a text, without their line feeds, where each begins, and what may be compared in them."""

    __slots__ = ("effort", "starts", "text", "values")

    def __init__(self, text: str) -> None:
        self.text = text
        self.effort = Effort()
        self.values = text.split("\n")
        self.starts: list[int] = []
        at = 0
        for line in self.values:
            self.starts.append(at)
            at += len(line) + 1

    def __len__(self) -> int:
        return len(self.values)

    def span(self, first: int, count: int, *, feed: bool) -> str:
        """Some lines as they stand; with `feed`, the line feed behind them too, if there is one."""
        last = first + count - 1
        end = self.starts[last] + len(self.values[last])
        return self.text[self.starts[first] : end + 1 if feed else end]


class Wanted:
    """What the model wants to replace, as lines; a line feed at its end is no line of its own."""

    __slots__ = ("feed", "lines")

    def __init__(self, old: str) -> None:
        lines = old.split("\n")
        self.feed = len(lines) > 1 and lines[-1] == ""
        self.lines = lines[:-1] if self.feed else lines


def windows(keys: Sequence[str], wanted: Sequence[str], start: int = 0) -> Iterator[int]:
    """Where `wanted` stands in `keys`, from `start` on, in order, each place once.

    No key is looked at twice (Knuth, Morris, Pratt): texts of many equal lines are ordinary.
    """
    back = _back(wanted)
    at, count = start, 0
    while at < len(keys):
        if count == 0:
            try:
                at = keys.index(wanted[0], at)
            except ValueError:
                return
        count = _next(wanted, back, count, keys[at])
        at += 1
        if count == len(wanted):
            yield at - count
            count = back[-1]


def _back(wanted: Sequence[str]) -> list[int]:
    """For each beginning of `wanted`, how much of its end is a shorter beginning too."""
    back = [0]
    for key in wanted[1:]:
        back.append(_next(wanted, back, back[-1], key))
    return back


def _next(wanted: Sequence[str], back: list[int], count: int, key: str) -> int:
    """How much of `wanted` stands before the next key, `count` of it before this one."""
    while count and wanted[count] != key:
        count = back[count - 1]
    return count + 1 if wanted[count] == key else 0

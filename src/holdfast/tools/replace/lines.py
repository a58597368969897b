"""A text as lines with their places."""

from collections.abc import Iterator


class Lines:
    """The lines of a text, without their line feeds, and where each begins."""

    __slots__ = ("starts", "text", "values")

    def __init__(self, text: str) -> None:
        self.text = text
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


def windows(keys: list[str], wanted: list[str], start: int = 0) -> Iterator[int]:
    """Where `wanted` stands in `keys`, from `start` on, in order, each place once."""
    count, first = len(wanted), wanted[0]
    at = start - 1
    while True:
        try:
            at = keys.index(first, at + 1)
        except ValueError:
            return
        if keys[at : at + count] == wanted:
            yield at

"""Where a key stands in a settings file: key path → offset, for errors, warnings and origins.

A scanner, not a judge: it is given text that a real parser has accepted, and is used only when a caller asks
for a position. What it cannot place it leaves out; the caller falls back to the nearest key above.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]

_JSON = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|,)"""
    r"""|(?P<open>[{\[])|(?P<close>[}\]])|(?P<colon>:)"""
    r"""|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<word>[^\s,:{}\[\]"'/]+)|(?P<other>.)""",
    re.DOTALL,
)
_TOML_TABLE = re.compile(r"\s*\[{1,2}([^\]]+)\]{1,2}")
_TOML_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_TOML_NAME = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def of_json(text: str) -> dict[KeyPath, int]:
    """The offset of each key of an object (the last, where it stands twice) and of each item of an array."""
    return dict(_in_json(text))


def repeated(text: str) -> list[tuple[KeyPath, int]]:
    """The keys that stand twice in one object, with the offset of each later one."""
    seen: set[KeyPath] = set()
    twice: list[tuple[KeyPath, int]] = []
    for path, offset in _in_json(text):
        # What stands in an object that comes twice is not reported: the object itself is.
        if path in seen and not any(path[: len(above)] == above for above, _ in twice if above != path):
            twice.append((path, offset))
        seen.add(path)
    return twice


def _in_json(text: str) -> Iterator[tuple[KeyPath, int]]:
    path: list[str | int] = []
    counts: list[int | None] = []  # for each open bracket: the next index, None for an object
    pending: tuple[str, int] | None = None  # a word that may turn out to be a key
    for token in _JSON.finditer(text):
        match token.lastgroup:
            case "text" | "word" if counts and counts[-1] is None and pending is None:
                pending = (_plain(token[0]), token.start())
            case "colon" if pending is not None:
                path.append(pending[0])
                yield tuple(path), pending[1]
            case "open" | "text" | "word":
                if counts and (index := counts[-1]) is not None:
                    path.append(index)
                    yield tuple(path), token.start()
                    counts[-1] = index + 1
                pending = None
                if token.lastgroup == "open":
                    counts.append(None if token[0] == "{" else 0)
                elif path:
                    path.pop()
            case "close" if counts:
                counts.pop()
                pending = None
                if path:
                    path.pop()
            case _:
                continue


def of_toml(text: str) -> dict[KeyPath, int]:
    """The offset of each table and key that stands at the head of a line."""
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    at = 0
    for line in text.splitlines(keepends=True):
        if head := _TOML_TABLE.match(line):
            table = _names(head[1])
            _note(found, table, at + head.start(1))
        elif key := _TOML_KEY.match(line):
            _note(found, (*table, *_names(key[1])), at + key.start(1))
        at += len(line)
    return found


def line_breaks(text: str) -> list[int]:
    """Where the lines end."""
    return [match.start() for match in re.finditer("\n", text)]


def line_and_column(breaks: list[int], offset: int) -> tuple[int, int]:
    """Both counted from one, as editors do."""
    line = bisect_right(breaks, offset - 1)
    return line + 1, offset - (breaks[line - 1] + 1 if line else 0) + 1


def _note(found: dict[KeyPath, int], path: KeyPath, offset: int) -> None:
    for length in range(1, len(path) + 1):
        found.setdefault(path[:length], offset)


def _names(dotted: str) -> KeyPath:
    return tuple(name.strip("\"'") for name in _TOML_NAME.findall(dotted))


def _plain(token: str) -> str:
    if token[0] not in "\"'":
        return token
    if "\\" not in token:
        return token[1:-1]
    import pyjson5

    return str(pyjson5.decode(token))

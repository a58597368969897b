"""Markdown with YAML front matter: settings at the head, a text below, and where each setting stands.

The files may be untrusted: no aliases (they can stand for more than any memory holds), bounded depth and
size, and no YAML type that JSON does not have.
"""

import datetime as dt
import math
import re
from collections.abc import Iterator
from typing import Any

from holdfast.config.documents.positions import KeyPath

HEAD_BYTES_MAX = 64 * 1024
DEPTH_MAX = 32

_HEAD = re.compile(r"---[ \t]*\r?\n(.*?)(?:\r?\n)?^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_OPEN = re.compile(r"---[ \t]*\r?\n(?=[ \t\r\n]*[A-Za-z_][\w-]*:(?:[ \t\r]|$))", re.MULTILINE)
_PLAIN = re.compile(r"([A-Za-z_][\w-]*):[ \t]+([^\s'\"|>\[{&*!#][^\n]*:[^\n]*)$")
_ABOVE = 1  # The line of dashes.


class BadFrontMatter(ValueError):
    """The head of a file cannot be read; the message says why in a few words. Line and column from one."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class _Head:
    """Front matter as it is parsed, which may be eased, and the way back to the lines that were written."""

    def __init__(self, written: str, *, eased: bool) -> None:
        self.text = written
        self._back: list[tuple[int, int]] | None = None
        if eased:
            self._ease(written)

    def _ease(self, written: str) -> None:
        """`description: Use when: always` is what users write: such values become block texts."""
        lines: list[str] = []
        self._back = []
        for number, line in enumerate(written.split("\n")):
            found = _PLAIN.match(line)
            lines += [line] if found is None else [f"{found[1]}: |-", f"  {found[2]}"]
            self._back.append((number, 0))
            if found is not None:
                self._back.append((number, found.start(2) - 2))
        self.text = "\n".join(lines)

    def place(self, mark: Any) -> tuple[int, int]:
        """Line and column in the file, from one, of one of PyYAML's marks."""
        if mark is None:
            return 1, 1
        line, shift = mark.line, 0
        if self._back is not None:
            beyond = max(0, line - len(self._back) + 1)
            line, shift = self._back[line - beyond]
            line += beyond
            shift = 0 if beyond else shift
        return line + 1 + _ABOVE, mark.column + 1 + shift


def split(text: str) -> tuple[dict[str, Any], str]:
    """The settings and the text, trimmed. A file without front matter is all text; front matter that nothing
    closes is the whole file, as in OpenCode.
    """
    head, rest = _parted(text)
    if head is None:
        return {}, text.strip()
    if len(head) > HEAD_BYTES_MAX:
        raise BadFrontMatter(f"its front matter has more than {HEAD_BYTES_MAX} characters")
    if rest is not None:
        return _loaded(head), rest.strip()
    try:
        return _loaded(head), ""
    except BadFrontMatter:
        raise BadFrontMatter("its front matter is not closed by a line of three dashes") from None


def _parted(text: str) -> tuple[str | None, str | None]:
    """The front matter and what is behind it: None where there is none, and where nothing closes it."""
    if (found := _HEAD.match(text)) is not None:
        return found[1], text[found.end() :]
    # A line of dashes may also be a rule above plain text: front matter begins with a key.
    opened = _OPEN.match(text)
    return (None, None) if opened is None else (text[opened.end() :], None)


def positions(text: str) -> dict[KeyPath, tuple[int, int]]:
    """Line and column of each setting of a file that `split` accepts."""
    import yaml

    written, _ = _parted(text)
    if written is None:
        return {}
    for eased in (False, True):
        head = _Head(written, eased=eased)
        try:
            node = yaml.compose(head.text, Loader=_loader())
        except yaml.YAMLError:
            continue
        return dict(_places(head, node, ()))
    return {}


def _places(head: _Head, node: Any, path: KeyPath) -> Iterator[tuple[KeyPath, tuple[int, int]]]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, str(key.value)), head.place(key.start_mark)
            yield from _places(head, value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), head.place(value.start_mark)
            yield from _places(head, value, (*path, index))


def _loaded(written: str) -> dict[str, Any]:
    import yaml

    try:
        value = _yaml(_Head(written, eased=False))
    except yaml.YAMLError:
        head = _Head(written, eased=True)
        try:
            value = _yaml(head)
        except yaml.YAMLError as error:
            place = head.place(getattr(error, "problem_mark", None))
            raise BadFrontMatter("its front matter is not YAML", *place) from None
    except RecursionError:
        raise BadFrontMatter("its front matter is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadFrontMatter("its front matter is no list of keys and values", 1 + _ABOVE)
    return {str(key): _plain(item) for key, item in value.items()}


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml(head: _Head) -> Any:
    import yaml

    depth = 0
    for event in yaml.parse(head.text, Loader=_loader()):
        place = head.place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise BadFrontMatter("its front matter uses YAML aliases; write the values out", *place)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise BadFrontMatter("its front matter is nested too deeply", *place)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    try:
        return yaml.load(head.text, Loader=_loader())  # noqa: S506 - a safe loader, see above
    except (ValueError, OverflowError) as error:  # a date or a number that cannot be
        raise BadFrontMatter("its front matter has a value that cannot be") from error


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case float() if not math.isfinite(value):
            raise BadFrontMatter("its front matter has a number that is not finite")
        case int() if not isinstance(value, bool) and abs(value) >= 2**63:
            raise BadFrontMatter("its front matter has a number that is too large")
        case None | str() | bool() | int() | float():
            return value
        case dt.date():
            return value.isoformat()
        case _:
            raise BadFrontMatter("its front matter has a value of a kind that settings do not have")

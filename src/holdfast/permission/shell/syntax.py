"""Parses a shell command with tree-sitter, within a bound of time and memory.

tree-sitter's memory grows with the square of some inputs (20 KB of `a|a|a|…` take a gigabyte), so only a
short text is parsed. The bodies of here-documents in which the shell expands nothing are taken out first;
what must stay true: the tree then shows a here-document at each of those places, or nothing is understood.
"""

import re
import unicodedata
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

TEXT_BYTES_MAX: Final = 256 * 1024
PARSED_BYTES_MAX: Final = 8_000
PIPES_MAX: Final = 300
DEPTH_MAX: Final = 60

_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|\\?([A-Za-z_]\w*))")
_EXPANDS = re.compile(r"\$[({\[]|`")
_SPLIT = re.compile(r"(?:^|[^ \t])\\\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class NotUnderstood(Exception):
    """A command, or a part of it, cannot be read; the message says why."""


class Parsed(msgspec.Struct, frozen=True):
    """A tree, and the text that it is of."""

    root: "Node"
    source: bytes

    def text(self, node: "Node") -> str:
        """The source of a node."""
        return self.source[node.start_byte : node.end_byte].decode()


def parse(command: str) -> Parsed:
    """The tree of a command that is valid throughout; `NotUnderstood` for any other."""
    _check(command)
    skeleton, starts = _without_bodies(command)
    source = skeleton.encode()
    if len(source) > PARSED_BYTES_MAX or skeleton.count("|") > PIPES_MAX:
        raise NotUnderstood(f"it is longer than the {PARSED_BYTES_MAX} bytes that are read")
    root = _parser().parse(source).root_node
    if root.has_error:
        raise NotUnderstood("its syntax is not understood")
    if _depth(root) > DEPTH_MAX:
        raise NotUnderstood("it is nested too deeply")
    places = {node.start_byte for node in descendants(root) if node.type == "heredoc_start"}
    if not {len(skeleton[:start].encode()) for start in starts} <= places:
        raise NotUnderstood("its here-documents are not understood")
    return Parsed(root, source)


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _check(command: str) -> None:
    if len(command.encode("utf-8", "surrogatepass")) > TEXT_BYTES_MAX:
        raise NotUnderstood("it is too long")
    if _CONTROL.search(command):
        raise NotUnderstood("it holds control characters")
    if _SPLIT.search(command):
        raise NotUnderstood("a word in it is continued on another line")
    for sign in set(command):
        # What the parser takes for a space and the shell for a letter, or what cannot be written down.
        if not sign.isascii() and unicodedata.category(sign) in ("Zs", "Zl", "Zp", "Cc", "Cs", "Co"):
            raise NotUnderstood("it holds spaces that are none to the shell")


def _without_bodies(command: str) -> tuple[str, list[int]]:
    """The command without the bodies of here-documents that are only text, and where those begin."""
    lines = command.split("\n")
    ends = _Ends(lines)
    kept: list[str] = []
    starts: list[int] = []
    at = offset = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        found = list(_HEREDOC.finditer(line))
        end = ends.find(found[0], at) if len(found) == 1 else None
        if end is not None:
            quoted = found[0].group(2) or found[0].group(3) or "\\" in found[0].group(0)
            body = lines[at:end]
            if not quoted and any(each.endswith("\\") for each in body):
                raise NotUnderstood("a line of a here-document is continued")  # Perhaps the one that ends it.
            if quoted or not _EXPANDS.search("\n".join(body)):
                word = found[0].group(0).lstrip("<-").lstrip()
                starts.append(offset + found[0].end() - len(word))
                at = end
        kept.append(line)
        offset += len(line) + 1
    return "\n".join(kept), starts


class _Ends:
    """The lines that may end here-documents, by their words."""

    def __init__(self, lines: list[str]) -> None:
        self._whole: dict[str, list[int]] = {}
        self._stripped: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            self._whole.setdefault(line, []).append(number)
            self._stripped.setdefault(line.lstrip("\t"), []).append(number)

    def find(self, heredoc: re.Match[str], first: int) -> int | None:
        """The first line from `first` on that ends one."""
        word = heredoc.group(2) or heredoc.group(3) or heredoc.group(4)
        numbers = (self._stripped if heredoc.group(1) else self._whole).get(word, [])
        at = bisect_left(numbers, first)
        return numbers[at] if at < len(numbers) else None


def descendants(root: "Node") -> "list[Node]":
    """A node and everything below it, in the order of the text."""
    found: list[Node] = []
    left = [root]
    while left:
        node = left.pop()
        found.append(node)
        left.extend(reversed(node.children))
    return found


def _depth(root: "Node") -> int:
    deepest, level = 0, [root]
    while level:
        deepest += 1
        level = [child for node in level for child in node.children]
    return deepest

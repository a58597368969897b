"""Checks that the parser has divided a command into words as the shell does.

tree-sitter's grammar is more lenient than the shell: it takes `{a` for a brace and a word, joins what a line
break divides, divides what a quote joins, and shows some text nowhere. A random search against a real shell
found each of these (`tests/permission/shell/test_against_bash.py`).
"""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holdfast.permission.shell.syntax import NotUnderstood, Parsed, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

_TEXTS: Final = frozenset(("string", "heredoc_body", "heredoc_redirect", "regex", "expansion"))
"""Nodes between whose children text may stand."""
_SPACE = re.compile(rb"(?:[ \t\n]|\\\n)*")
_BLANK = re.compile(r"(?<!\\)[ \t\n]")
_BETWEEN: Final = frozenset(b" \t\n;&|<>()")
"""The signs of which one stands on each side of a reserved word."""
_SPACED: Final = frozenset(("!", "[", "[[", "]", "]]", "{", "}"))


def check(parsed: Parsed, node: "Node") -> None:
    """Refuse a node that the shell would read otherwise."""
    children = node.children
    if node.type not in _TEXTS and children:
        first, last = (node.start_byte, node.end_byte) if node.parent is not None else (0, len(parsed.source))
        ends = [first, *(child.end_byte for child in children)]
        starts = [*(child.start_byte for child in children), last]
        for end, start in zip(ends, starts, strict=True):
            gap = parsed.source[end:start]
            is_dash = node.type == "redirected_statement" and gap.strip() == b"-"
            if _SPACE.fullmatch(gap) is None and not is_dash:
                raise NotUnderstood("its syntax is not understood")
            if gap and node.type in ("variable_assignment", "concatenation", "simple_expansion"):
                raise NotUnderstood("its words are not understood")
    for child in children:
        if not child.is_named and (child.type.isalpha() or child.type in _SPACED):
            _check_reserved(parsed, node, child)
    match node.type:
        case "command":
            _check_words(children)
        case "word" if _BLANK.search(parsed.text(node)) or "`" in parsed.text(node):
            raise NotUnderstood("its words are not understood")
        case "test_command" if children[0].type == "[" and "\n" in parsed.text(node):
            raise NotUnderstood("a test over several lines is not understood")
        case "heredoc_body" if any(each.type == "heredoc_redirect" for each in descendants(node)):
            raise NotUnderstood("a here-document in another is not understood")
        case _:
            pass


def _check_words(children: "list[Node]") -> None:
    for before, after in pairwise(children):
        is_joined = before.end_byte == after.start_byte
        if is_joined and not before.type.endswith("_redirect") and not after.type.endswith("_redirect"):
            raise NotUnderstood("its words are not understood")


def _check_reserved(parsed: Parsed, node: "Node", word: "Node") -> None:
    if word.type in _SPACED and node.type not in ("negated_command", "test_command", "compound_statement"):
        return
    sides = (parsed.source[word.start_byte - 1 : word.start_byte] if word.start_byte else b" ") + (
        parsed.source[word.end_byte : word.end_byte + 1] or b" "
    )
    if not set(sides) <= _BETWEEN:
        raise NotUnderstood(f"{word.type} is not understood here")

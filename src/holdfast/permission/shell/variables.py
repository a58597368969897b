"""What the variables of a command may hold, as far as the command itself says it.

Order and branches are not looked at: a variable holds any of the texts that are assigned to it anywhere. One
that is also changed in another way, or that depends on itself, is not known.
"""

import re
from typing import TYPE_CHECKING

from holdfast.permission.shell import programs, word
from holdfast.permission.shell.syntax import Parsed, descendants
from holdfast.permission.shell.word import HOME, TEXTS_MAX, Texts

if TYPE_CHECKING:
    from tree_sitter import Node

_PLAIN = re.compile(r"(?!npm_)(?!\w*_proxy$)[a-z][a-z0-9_]*")
_NAME = re.compile(r"[A-Za-z_]\w*")


def is_plain(name: str) -> bool:
    """Whether a variable is one of the command's own: programs read none of such a name."""
    return _PLAIN.fullmatch(name) is not None


def is_name(text: str) -> bool:
    """Whether a text could name a variable."""
    return _NAME.fullmatch(text) is not None


def collect(parsed: Parsed, home: str) -> tuple[dict[str, Texts], set[str]]:
    """The values by name, and the names of those that may hold something else than a number."""
    given: dict[str, list[Node | None]] = {}
    unknown: set[str] = set()
    for node in descendants(parsed.root):
        match node.type:
            case "variable_assignment":
                _assigned(parsed, node, given, unknown)
            case "for_statement":
                _looped(parsed, node, given, unknown)
            case "command" | "declaration_command" | "unset_command":
                unknown |= _written(parsed, node)
            case _:
                pass
    values: dict[str, Texts] = {} if "HOME" in given or "HOME" in unknown else {"HOME": (home,)}
    own = {name: nodes for name, nodes in given.items() if is_plain(name) and name not in unknown}
    while ready := [name for name in own if _uses(parsed, own[name]) & own.keys() == set()]:
        for name in ready:
            values[name] = _union(parsed, own.pop(name), values, home)
    worded = {name for name, nodes in given.items() if not all(_is_number(parsed, each) for each in nodes)}
    return values, worded | unknown


def _is_number(parsed: Parsed, node: "Node | None") -> bool:
    return node is None or node.type == "arithmetic_expansion" or parsed.text(node).isdecimal()


def _assigned(parsed: Parsed, node: "Node", given: "dict[str, list[Node | None]]", unknown: set[str]) -> None:
    target, *rest = node.children
    if target.type != "variable_name" or not rest or rest[0].type != "=" or len(rest) > 2:
        unknown.update(parsed.text(each) for each in descendants(target) if each.type == "variable_name")
        return
    given.setdefault(parsed.text(target), []).append(rest[1] if len(rest) == 2 else None)


def _looped(parsed: Parsed, node: "Node", given: "dict[str, list[Node | None]]", unknown: set[str]) -> None:
    kinds = [child.type for child in node.children]
    name = next(parsed.text(child) for child in node.children if child.type == "variable_name")
    if kinds[0] != "for" or "in" not in kinds:
        unknown.add(name)
        return
    words = node.children[kinds.index("in") + 1 :]
    given.setdefault(name, []).extend(
        child for child in words if child.is_named and child.type not in ("do_group", "comment")
    )


def _written(parsed: Parsed, node: "Node") -> set[str]:
    """The names that a command changes by itself."""
    words = [parsed.text(child) for child in node.children]
    if node.type == "command":
        first = next((parsed.text(each) for each in node.children if each.type == "command_name"), "")
        if first not in programs.WRITES_VARIABLES and not (first == "printf" and "-v" in words):
            return set()
    return {text for text in words if is_name(text)}


def _uses(parsed: Parsed, nodes: "list[Node | None]") -> set[str]:
    return {
        parsed.text(each)
        for node in nodes
        if node is not None
        for each in descendants(node)
        if each.type == "variable_name"
    }


def _union(parsed: Parsed, nodes: "list[Node | None]", values: dict[str, Texts], home: str) -> Texts:
    found: dict[str, None] = {}
    for node in nodes:
        texts = ("",) if node is None else word.texts(parsed, node, values)
        for text in texts or ():
            if text.startswith(HOME) and text[1:2] not in ("", "/"):
                return None
            found[text.replace(HOME, home)] = None
        if texts is None or len(found) > TEXTS_MAX:
            return None
    return tuple(found)

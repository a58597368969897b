"""Changes one value in the text of a settings file, and nothing else: comments, order and spaces stay. Pure.

What must stay true: what a parser reads from the new text is what it read from the old one, with that one
change. A text in which that cannot be had is refused, never rewritten.
"""

import copy
import re
from typing import Any, Final, NamedTuple

import msgspec
import pyjson5

from holdfast.errors import Refused

_UNIT: Final = "  "
_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<comma>,)"""
    r"""|(?P<open>[{\[])|(?P<close>[}\]])|(?P<colon>:)"""
    r"""|(?P<value>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s,:{}\[\]"'/]+)""",
    re.DOTALL,
)
_REST: Final = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)?")
"""What may follow a value on its line."""


class _Member(NamedTuple):
    key: str
    start: int
    """Where its key begins."""
    value: "_Node"
    comma: int | None
    """Where the comma after it stands."""


class _Node(NamedTuple):
    """A value in the text; of an object also its members, in their order."""

    start: int
    end: int
    members: list[_Member] | None


def with_value(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with a value at a path; objects on the way are made where there are none."""
    base = text if text.strip() else "{}\n"
    was = _parsed(base)
    root = _node(base)
    node, depth = _deepest(root, path)
    rest = path[depth:]
    if not rest:
        made = base[: node.start] + _json(value, _indent(base, node.start)) + base[node.end :]
    else:
        nested = value
        for key in reversed(rest[1:]):
            nested = {key: nested}
        made = _with_member(base, node, rest[0], nested)
    return _checked(base, made, _set(was, path, value))


def without(text: str, path: tuple[str, ...]) -> str:
    """The text without the value at a path, which is there."""
    was = _parsed(text)
    above, _ = _deepest(_node(text), path[:-1])
    assert above.members is not None
    made = text
    for index in range(len(above.members) - 1, -1, -1):
        if above.members[index].key == path[-1]:  # A key may stand twice.
            above, _ = _deepest(_node(made), path[:-1])
            assert above.members is not None
            made = _without_member(made, above, index)
    wanted = copy.deepcopy(was)
    target = wanted
    for key in path[:-1]:
        target = target[key]
    del target[path[-1]]
    return _checked(text, made, wanted)


def _checked(text: str, made: str, wanted: Any) -> str:
    try:
        found = pyjson5.decode(made)
    except pyjson5.Json5DecoderException:
        found = None
    if found != wanted:
        raise Refused("this file is written in a way that cannot be changed safely; edit it by hand")
    return made


def _parsed(text: str) -> Any:
    try:
        found = pyjson5.decode(text)
    except pyjson5.Json5DecoderException:
        found = None
    if not isinstance(found, dict):
        raise Refused("this file is no JSON object; mend it first")
    return found


def _set(value: Any, path: tuple[str, ...], new: Any) -> Any:
    made = copy.deepcopy(value)
    target = made
    for key in path[:-1]:
        if not isinstance(target.get(key), dict):
            target[key] = {}
        target = target[key]
    target[path[-1]] = new
    return made


def _deepest(root: _Node, path: tuple[str, ...]) -> tuple[_Node, int]:
    """The node that the longest part of the path leads to, and how long that is."""
    node = root
    for depth, key in enumerate(path):
        found = [each.value for each in node.members or () if each.key == key]
        if not found:
            return node, depth
        node = found[-1]
        if node.members is None and depth + 1 < len(path):
            raise Refused(f"{'.'.join(path[: depth + 1])} is no object; edit the file by hand")
    return node, len(path)


def _with_member(text: str, node: _Node, key: str, value: Any) -> str:
    name = msgspec.json.encode(key).decode()
    assert node.members is not None
    if not node.members:
        indent = _indent(text, node.start)
        inner = text[node.start + 1 : node.end - 1]
        kept = inner.rstrip()  # Comments in an empty object stay.
        member = f"{indent}{_UNIT}{name}: {_json(value, indent + _UNIT)}"
        return f"{text[: node.start + 1]}{kept}\n{member}\n{indent}{text[node.end - 1 :]}"
    last = node.members[-1]
    if "\n" not in text[node.start : node.end]:
        comma = "" if last.comma is not None else ","
        at = last.value.end if last.comma is None else last.comma + 1
        return f"{text[:at]}{comma} {name}: {_json(value, None)}{text[at:]}"
    indent = _indent(text, last.start)
    at = last.value.end if last.comma is None else last.comma + 1
    rest = _REST.match(text, at)
    after = at if rest is None else rest.end()
    comma = "," if last.comma is None else ""
    return (
        f"{text[:at]}{comma}{text[at:after]}\n{indent}{name}: {_json(value, indent)}"
        f"{',' if last.comma is not None else ''}{text[after:]}"
    )


def _without_member(text: str, node: _Node, index: int) -> str:
    assert node.members is not None
    member = node.members[index]
    start, end = member.start, (member.value.end if member.comma is None else member.comma + 1)
    rest = _REST.match(text, end)
    if rest is not None and text[rest.end() : rest.end() + 1] in ("\n", ""):
        end = rest.end()
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip() and text[end : end + 1] == "\n":
        start, end = line, end + 1
    made = text[:start] + text[end:]
    if member.comma is None and index > 0:  # The last one: the comma before it goes too.
        comma = node.members[index - 1].comma
        assert comma is not None
        made = made[:comma] + made[comma + 1 :]
    return made


def _indent(text: str, at: int) -> str:
    line = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[line:at])
    return "" if found is None else found[0]


def _json(value: Any, indent: str | None) -> str:
    """A value as it is written; None: on one line."""
    data = msgspec.json.encode(value)
    if indent is None:
        return msgspec.json.format(data, indent=0).decode()
    return msgspec.json.format(data, indent=len(_UNIT)).decode().replace("\n", f"\n{indent}")


def _node(text: str) -> _Node:
    """The tree of a text that a parser has accepted."""
    tokens = [found for found in _TOKEN.finditer(text) if found.lastgroup != "skip"]
    node, _ = _read(tokens, 0)
    return node


def _read(tokens: list[re.Match[str]], at: int) -> tuple[_Node, int]:
    token = tokens[at]
    if token.lastgroup != "open":
        return _Node(token.start(), token.end(), None), at + 1
    is_object = token[0] == "{"
    members: list[_Member] = []
    at += 1
    while tokens[at].lastgroup != "close":
        key, start = "", tokens[at].start()
        if is_object:
            key = _key(tokens[at][0])
            at += 2
        value, at = _read(tokens, at)
        comma = None
        if tokens[at].lastgroup == "comma":
            comma = tokens[at].start()
            at += 1
        members.append(_Member(key, start, value, comma))
    return _Node(token.start(), tokens[at].end(), members if is_object else None), at + 1


def _key(token: str) -> str:
    return str(pyjson5.decode(token)) if token[0] in "\"'" else token

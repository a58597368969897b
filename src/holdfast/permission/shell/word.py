"""Evaluates one word of a command: the texts that it stands for, or None where only the shell will know.

While a word is put together, signs that mean something to the shell are kept apart from the same signs in
quotes: each has a code point of the private use area, which no command holds (`syntax`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.permission.shell.syntax import Parsed

if TYPE_CHECKING:
    from tree_sitter import Node

ANY: Final = "\ue000"
"""A wildcard: `*`, `?` or `[`."""
_OPEN: Final = "\ue001"
_COMMA: Final = "\ue002"
_CLOSE: Final = "\ue003"
HOME: Final = "\ue004"
"""A tilde at the beginning of a word."""

_SIGNS = {"*": ANY, "?": ANY, "[": ANY, "{": _OPEN, ",": _COMMA, "}": _CLOSE}
_PLAIN = {_OPEN: "{", _COMMA: ",", _CLOSE: "}"}
_IN_QUOTES = '$`"\\\n'
TEXTS_MAX: Final = 64

Texts = tuple[str, ...] | None
"""The texts that a word may stand for; None where they are not known."""
Values = Mapping[str, tuple[str, ...] | None]
"""What variables may hold; None for what is not known."""


class Word(msgspec.Struct, frozen=True):
    """A word as it is written; the texts that it may stand for, and those that it stands for whatever
    variables hold. Names and options are judged by the latter.
    """

    source: str
    texts: Texts
    fixed: Texts

    @property
    def text(self) -> str | None:
        """The one text of the word; None where there is not exactly one."""
        return self.fixed[0] if self.fixed is not None and len(self.fixed) == 1 else None

    @property
    def shown(self) -> str:
        """The word without quotes, where that is known."""
        found = self.source if self.texts is None else " ".join(self.texts)
        return found.replace(ANY, "*").replace(HOME, "~")


def literal(source: str, text: str | None = None) -> Word:
    """A word that stands for one text; for an unknown one without it."""
    texts = None if text is None else (text,)
    return Word(source, texts, texts)


def texts(parsed: Parsed, node: "Node", values: Values) -> Texts:
    """The texts of a word, wildcards marked; a tilde is put in by the caller, who knows the home."""
    raw = _raw(parsed, node, values, quoted=False)
    if raw is None:
        return None
    found: list[str] = []
    for each in raw:
        expanded = _expanded(each)
        if expanded is None or len(found) + len(expanded) > TEXTS_MAX:
            return None
        found += expanded
    return tuple(found)


def _raw(parsed: Parsed, node: "Node", values: Values, *, quoted: bool) -> Texts:
    source = parsed.text(node)
    match node.type:
        case "command_name":
            return _raw(parsed, node.children[0], values, quoted=quoted) if node.child_count == 1 else None
        case "word" | "number" | "variable_name" | "test_operator" | "extglob_pattern":
            return None if node.child_count else (_unescaped(source),)
        case "raw_string":
            return (source[1:-1],)
        case "ansi_c_string":
            return None if "\\" in source else (source[2:-1],)
        case "string":
            return _in_quotes(parsed, node, values)
        case "concatenation":
            parts = [_raw(parsed, child, values, quoted=quoted) for child in node.children]
            return _product(parts)
        case "simple_expansion" | "expansion":
            return _variable(parsed, node, values, quoted=quoted)
        case "process_substitution":
            return ("/dev/fd/63",)
        case _:
            return None


def _unescaped(source: str) -> str:
    """An unquoted piece: a sign behind a backslash is itself, and the other signs of the shell are marked."""
    made: list[str] = []
    signs = iter(source)
    for sign in signs:
        if sign == "\\":
            following = next(signs, "")
            made.append("" if following == "\n" else following)
        else:
            made.append(_SIGNS.get(sign, sign))
    if source.startswith("~"):
        made[0] = HOME
    return "".join(made)


def _in_quotes(parsed: Parsed, node: "Node", values: Values) -> Texts:
    """A text in double quotes. What stands between the nodes of the tree is text too."""
    parts: list[Texts] = []
    at = node.start_byte + 1
    for child in node.children[1:-1]:
        if child.type in ("string_content", "\n") or not child.is_named:
            continue
        parts += [_quoted_text(parsed, at, _begin(parsed, child)), _raw(parsed, child, values, quoted=True)]
        at = child.end_byte
    return _product([*parts, _quoted_text(parsed, at, node.end_byte - 1)])


def _begin(parsed: Parsed, node: "Node") -> int:
    """Where a node really begins: the parser counts the spaces before an expansion to it."""
    source = parsed.source[node.start_byte : node.end_byte]
    return node.start_byte + len(source) - len(source.lstrip())


def _quoted_text(parsed: Parsed, start: int, end: int) -> Texts:
    source = parsed.source[start:end].decode()
    made: list[str] = []
    at = 0
    while at < len(source):
        if source[at] == "\\" and at + 1 < len(source) and source[at + 1] in _IN_QUOTES:
            at += 1
            made.append("" if source[at] == "\n" else source[at])
        else:
            made.append(source[at])
        at += 1
    return ("".join(made),)


def _variable(parsed: Parsed, node: "Node", values: Values, *, quoted: bool) -> Texts:
    named = [child for child in node.children if child.is_named]
    signs = {child.type.strip() for child in node.children if not child.is_named}
    if len(named) != 1 or named[0].type != "variable_name" or not signs <= {"$", "${", "}"}:
        return None
    held = values.get(parsed.text(named[0]))
    if held is None:
        return None
    if quoted:  # Nothing in it means anything any more, wildcards aside: those match what they match.
        return held
    return None if any(sign.isspace() for each in held for sign in each) else held


def _product(parts: list[Texts]) -> Texts:
    made: tuple[str, ...] = ("",)
    for each in parts:
        if each is None or len(made) * len(each) > TEXTS_MAX:
            return None
        made = tuple(before + after for before in made for after in each)
    return made


def _expanded(raw: str) -> list[str] | None:
    """Braces with a comma, expanded; None for ranges and for too many."""
    if raw.count(_OPEN) > TEXTS_MAX:
        return None
    left, done = [raw], list[str]()
    while left:
        text = left.pop()
        found = _braces(text)
        if found is None:
            if _OPEN in text and ".." in text[text.index(_OPEN) :]:
                return None
            done.append("".join(_PLAIN.get(sign, sign) for sign in text))
            continue
        start, end, choices = found
        left += [text[:start] + each + text[end + 1 :] for each in reversed(choices)]
        if len(left) + len(done) > TEXTS_MAX:
            return None
    return done


def _braces(text: str) -> tuple[int, int, list[str]] | None:
    """The first braces that hold a choice: where they are, and what may stand in their place."""
    for start in (index for index, sign in enumerate(text) if sign == _OPEN):
        depth, cut, choices = 0, start + 1, list[str]()
        for index in range(start, len(text)):
            sign = text[index]
            depth += (sign == _OPEN) - (sign == _CLOSE)
            if sign == _COMMA and depth == 1:
                choices.append(text[cut:index])
                cut = index + 1
            if depth == 0:
                if choices:
                    return start, index, [*choices, text[cut:index]]
                break
    return None

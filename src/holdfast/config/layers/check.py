"""Does a document say what the types expect? The first thing that does not is an error with its position;
unknown keys are only warned about.
"""

import re
import typing
from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import msgspec

from holdfast.config.documents.document import Document
from holdfast.config.documents.positions import KeyPath
from holdfast.errors import InvalidInput
from holdfast.schema import typed
from holdfast.schema.config import Config

# Keys of OpenCode that have no meaning here, and whose presence is no mistake.
IGNORED = frozenset(("$schema", "theme", "keybinds", "tui", "autoupdate", "layout", "enterprise"))
# Read by us, though no field of the type: they become others when the layers have been laid.
LEGACY: dict[str, Any] = {"tools": dict[str, bool], "autoshare": bool}

_MESSAGE_MAX = 200
_TYPE = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")
_TYPES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def check(document: Document, value: dict[str, Any]) -> list[str]:
    """Warnings, a line each; `InvalidInput` for the first value of the wrong type."""
    known = {key: item for key, item in value.items() if key not in IGNORED | LEGACY.keys()}
    legacy = {key: item for key, item in value.items() if key in LEGACY}
    for type_, part in ((Config, known), *((LEGACY[key], item) for key, item in legacy.items())):
        try:
            typed.convert(part, type_)
        except msgspec.ValidationError as error:
            path: KeyPath = () if part is known else (next(key for key, it in legacy.items() if it is part),)
            path, problem = next(_faults(type_, part, path), (path, str(error)))
            raise _invalid(document, path, problem) from None
    if (negative := next(_negative(known), None)) is not None:
        raise _invalid(document, negative, "expected a number >= 0")
    return [
        *_unmeant(document, known),
        *_strange(document, known),
    ]


def _strange(document: Document, known: dict[str, Any]) -> list[str]:
    return [
        f"{document.where(path)}: {'.'.join(map(str, path))} is no setting that Holdfast knows; it is ignored"
        for path in _unknown(Config, known, ())
    ]


def _invalid(document: Document, path: KeyPath, problem: str) -> InvalidInput:
    what = _worded(problem.partition(" - at `")[0])[:_MESSAGE_MAX]
    return InvalidInput(f"{document.where(path)}: {'.'.join(map(str, path))}: {what[:1].lower()}{what[1:]}")


def _worded(problem: str) -> str:
    """A message about types in words: a user who writes settings need not know ours."""

    def words(found: re.Match[str]) -> str:
        names = [name for name in found[1].split(" | ") if name != "null"]
        if not names or any(name not in _TYPES for name in names):
            return found[0]
        return " or ".join(_TYPES[name] for name in names)

    return _TYPE.sub(words, problem)


def _negative(value: dict[str, Any]) -> Iterator[KeyPath]:
    """Limits and prices of models below nothing. In a catalogue they would pass for unknown."""
    for id, provider in (value.get("provider") or {}).items():
        for name, model in (provider.get("models") or {}).items():
            for kind in ("limit", "cost"):
                for key, item in (model.get(kind) or {}).items():
                    if isinstance(item, (int, float)) and item < 0:
                        yield ("provider", id, "models", name, kind, key)


def _unmeant(document: Document, value: dict[str, Any]) -> Iterator[str]:
    """What can be read, and that its author cannot have meant."""
    for path, offset in document.repeated():
        yield f"{document.at(offset)}: {'.'.join(map(str, path))} stands twice; the last one counts"
    for key in ("model", "small_model"):
        if "/" not in (value.get(key) or "/"):
            where = document.where((key,))
            yield f"{where}: {key} is no model's name; write provider/model, for example openai/gpt-5"
    if value.get("lsp"):
        where = document.where(("lsp",))
        yield f"{where}: lsp: language servers are not supported; `checks` can run a type checker after edits"
    if value.get("formatter") is True:
        where = document.where(("formatter",))
        yield f"{where}: formatter: there are no formatters by default here; name each with its command"


@cache
def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = typing.get_type_hints(struct, include_extras=True)
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    return {wire: hints[name] for name, wire in names}


def _inner(type_: Any, value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """The parts of a container with the types that they should have."""
    type_ = _member(type_, value)
    if isinstance(value, dict) and isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        fields = _fields(type_)
        yield from ((key, fields[key], item) for key, item in value.items() if key in fields)
    elif isinstance(value, dict) and get_origin(type_) is dict:
        yield from ((key, get_args(type_)[1], item) for key, item in value.items())
    elif isinstance(value, list) and get_origin(type_) in (list, tuple):
        # Only `tuple[X, ...]` stands in these types, besides a plugin with its options.
        if get_origin(type_) is tuple and get_args(type_)[1:] != (...,):
            return
        yield from ((index, get_args(type_)[0], item) for index, item in enumerate(value))


def _member(type_: Any, value: Any) -> Any:
    """The member of a union that fits the container."""
    if get_origin(type_) is not UnionType and get_origin(type_) is not typing.Union:
        return type_
    for member in get_args(type_):
        if isinstance(value, dict) and (
            get_origin(member) is dict or (isinstance(member, type) and issubclass(member, msgspec.Struct))
        ):
            return member
        if isinstance(value, list) and get_origin(member) in (list, tuple):
            return member
    return type_


def _faults(type_: Any, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """The innermost values that do not convert."""
    try:
        typed.convert(value, type_)
    except msgspec.ValidationError as error:
        found = False
        for key, inner, item in _inner(type_, value):
            for fault in _faults(inner, item, (*path, key)):
                found = True
                yield fault
        if not found:
            choices = _choices(type_)
            # The message of a wrong choice would show the value, which may have come from the environment.
            named = str(error).startswith("Invalid enum value")
            yield path, f"Expected one of {', '.join(dict.fromkeys(choices))}" if named else str(error)


def _choices(type_: Any) -> list[str]:
    if get_origin(type_) is Literal:
        return [repr(choice) for choice in get_args(type_)]
    return [choice for member in get_args(type_) for choice in _choices(member)]


def _unknown(type_: Any, value: Any, path: KeyPath) -> Iterator[KeyPath]:
    member = _member(type_, value)
    if isinstance(value, dict) and isinstance(member, type) and issubclass(member, msgspec.Struct):
        fields = _fields(member)
        yield from ((*path, key) for key in value if key not in fields)
    for key, inner, item in _inner(type_, value):
        if isinstance(item, (dict, list)):
            yield from _unknown(inner, item, (*path, key))

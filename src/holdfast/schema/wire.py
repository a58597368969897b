"""What every value on the wire has in common, and the codec. Owns wire names, strictness and the treatment
of unknown fields.

Python names are snake_case, wire names the specification's camelCase. An optional field is absent, never
null: null is tolerated on input and never written. Numbers are finite. Fields that a type lacks survive in
the `extra` of a `Record` (see `extra.py`); types that are no records, such as events, drop them.

What must stay true: the plain case costs one msgspec call. Everything that fails is an `InvalidInput` with
the path of the fault.
"""

from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, overload

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import extra as unknown
from holdfast.schema import typed
from holdfast.schema.extra import Extra
from holdfast.text import quoted

T = TypeVar("T")

Num = int | float
"""A finite number; an integer stays an integer."""

Count = Annotated[int, msgspec.Meta(ge=0)]
"""A non-negative integer: a count, an offset, or a time in Unix milliseconds."""

JsonMap = dict[str, Any]
"""A JSON object that we carry and do not look into."""

# Names that the specification spells differently from its own rule.
_SPELT = {"tail_start_id": "tail_start_id", unknown.EXTRA_FIELD: unknown.EXTRA_WIRE}

_MESSAGE_MAX = 300


def wire_name(name: str) -> str:
    """The wire name of a Python field: camelCase, with `id` in capitals except at the start."""
    if name in _SPELT:
        return _SPELT[name]
    first, *rest = name.split("_")
    return first + "".join("ID" if word == "id" else word.capitalize() for word in rest)


class Wire(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    rename=wire_name,
):
    """A value with a JSON form. A change is a new value: `msgspec.structs.replace`.

    Values form no cycles, so the garbage collector need not look at them (`gc=False`): it took half of the
    time in which a long history is decoded.
    """


if TYPE_CHECKING:
    _Kept = Extra | None
else:
    # For msgspec the field is an `Extra` and nothing else, so that even a null under its wire name counts as
    # unknown.
    _Kept = Extra


class Record(Wire, frozen=True, kw_only=True):
    """A value that is stored by itself, and therefore keeps what it does not know."""

    extra: _Kept = None


@overload
def decode(type_: type[T], data: bytes | str) -> T: ...
@overload
def decode(type_: Any, data: bytes | str) -> Any: ...
def decode(type_: Any, data: bytes | str) -> Any:
    """The value of `type_` (a struct, a union, a list of them) that `data` spells, unknown fields kept."""
    held = _DECODERS.get(id(type_))
    decoder = held[1] if held is not None else _decoder(type_)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        return _decode_foreign(type_, data, error)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _malformed(error) from error


def convert(type_: Any, value: Any) -> Any:
    """The value of `type_` that decoded JSON (dicts, lists) stands for, unknown fields kept."""
    try:
        return typed.convert(unknown.split(type_, value), type_)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _malformed(error) from error


def encode(value: Any) -> bytes:
    """`value` as compact JSON, kept fields included; what JSON cannot say is refused."""
    try:
        try:
            data = _ENCODER.encode(value)
        except _ExtraMet:
            data = _ENCODER.encode(unknown.plain(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(_short(f"cannot be written as JSON: {error}")) from error
    # msgspec writes NaN and infinity as null. A null can also be an honest one, or a word of a text, so it
    # only makes us look: first with one quick search, then for a null that stands where a value does.
    if b"null" in data and (b":null" in data or b",null" in data or b"[null" in data or data == b"null"):
        _refuse_infinite(value)
    return data


def checked(value: T, what: str) -> T:
    """The value, as it will be read back: what a caller made with the wrong types is refused by name."""
    try:
        return decode(type(value), encode(value))
    except InvalidInput as error:
        raise InvalidInput(f"{what} is not valid: {error}") from error


def _decode_foreign(type_: Any, data: bytes | str, error: msgspec.ValidationError) -> Any:
    """Decode what the strict decoder refused, in case its only fault is that it says more than we know."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as worse:
        raise _malformed(worse) from error
    return convert(type_, value)


def _malformed(error: Exception) -> InvalidInput:
    if isinstance(error, RecursionError):
        return InvalidInput("the JSON is nested too deeply; flatten it")
    return InvalidInput(_short(f"not the JSON that was expected: {error}"))


def _short(message: str) -> str:
    """Foreign data may speak in a message, but only briefly and on one line."""
    return quoted(message, _MESSAGE_MAX)


class _ExtraMet(Exception):
    """The encoder came to a kept field: take the slow path."""


def _enc_hook(value: object) -> Any:
    if isinstance(value, Extra):
        raise _ExtraMet
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(enc_hook=_enc_hook)

# Decoders by the identity of their type: hashing a union of twelve structs would cost as much as decoding
# one. Each entry holds its type, so the identity cannot be reused; types made on the fly stay out once the
# table is full.
_DECODERS: dict[int, tuple[Any, msgspec.json.Decoder[Any]]] = {}
_DECODERS_MAX = 256


def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    decoder = typed.decoder(type_)
    if len(_DECODERS) < _DECODERS_MAX:
        _DECODERS[id(type_)] = (type_, decoder)
    return decoder


def _refuse_infinite(value: Any) -> None:
    """Raise if a number in `value` is not finite. No recursion: opaque JSON may be deep."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, float):
            if not isfinite(item):
                raise InvalidInput(f"cannot be written as JSON: {item} is not a finite number")
        elif isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, (list, tuple)):
            todo.extend(item)
        elif isinstance(item, msgspec.Struct):
            todo.extend(getattr(item, name) for name in item.__struct_fields__)
        elif isinstance(item, Extra):
            todo.extend((*item.unknown.values(), *item.inner.values()))

"""Decodes one frame of a stream. One msgspec call, and a way out for what strict JSON has no word for."""

from typing import TypeVar

import msgspec

from holdfast.schema import typed
from holdfast.text import all_mended

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """The frame. Half of a surrogate pair, as servers write that cut text by UTF-16 units, becomes U+FFFD."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\u" not in data:
            raise
        import json

        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if value is None:
            raise
        return typed.convert(all_mended(value), decoder.type)

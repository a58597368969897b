"""Reads the input of a tool call, which models write as JSON text and sometimes get wrong."""

import msgspec

from holdfast.schema.wire import JsonMap


def read_input(text: str) -> tuple[JsonMap, str | None]:
    """The input, and the text itself where it is no JSON object. No text at all is a call without input."""
    if not text.strip():
        return {}, None
    try:
        return msgspec.json.decode(text, type=JsonMap), None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}, text

"""What every wire needs of a tool call (ids, names, inputs, schemas), and words for an empty message. Pure.

What must stay true: two ids stay two. An id that must be changed gets a digest of the whole, so neither a
character that is replaced nor an end that is cut can make it another's; an id that fits is left alone.

A message of which a wire can carry nothing is not left out: then its neighbours would be joined, and a
request would no longer extend the one before it; or the model would speak first, or twice. A wire refuses the
empty and the blank, so words must stand there, in brackets, as no user or model wrote them.
"""

import hashlib
import re
from typing import Final
from xml.sax.saxutils import escape

import msgspec

from holdfast.schema.wire import JsonMap

_DIGEST = 12


def fitted_id(id: str, *, length_max: int, plain: bool = False) -> str:
    """The id in at most `length_max` characters; `plain`: of letters, digits, `_` and `-` alone."""
    kept = re.sub(r"[^A-Za-z0-9_-]", "_", id) if plain else id
    if kept == id and 0 < len(id) <= length_max:
        return id
    digest = hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return f"{kept[: length_max - _DIGEST - 1]}_{digest}"


LENGTH_MAX: Final = 64
"""What every wire takes: so many letters, digits, `_` and `-`."""

UNNAMED: Final = "unnamed"
"""No tool has this name, so the model learns that there is none; an empty one would be refused with it."""


def read_name(name: object) -> str:
    """The name that the model gave, or a word for none."""
    return name if isinstance(name, str) and name else UNNAMED


def fitted_name(name: str) -> str:
    """The name as every wire takes it back; one that fits, and so every tool's own, is left alone."""
    return fitted_id(name or UNNAMED, length_max=LENGTH_MAX, plain=True)


def read_input(text: str) -> tuple[JsonMap, str | None]:
    """The input, and the text itself where it is no JSON object. No text at all is a call without input."""
    if not text.strip():
        return {}, None
    try:
        return msgspec.json.decode(text, type=JsonMap), None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}, text


def complete_schema(schema: JsonMap) -> JsonMap:
    """The schema of an object: one that does not say so, or names no property, is refused."""
    if schema.get("type", "object") != "object":
        return schema
    return {"type": "object", "properties": {}, **schema}


NO_ANSWER: Final = "[No answer]"
"""In the place of an answer."""

NO_WORDS: Final = "[Empty message]"
"""In the place of a prompt."""


def wrapped(text: str) -> str:
    """The text between tags that no text inside can close."""
    return f"<system-update>\n{escape(text)}\n</system-update>"

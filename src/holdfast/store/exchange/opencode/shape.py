"""Small repairs of foreign JSON: what is missing or of another type gets the nearest thing that fits."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import wire

_FIELD = re.compile(r" - at `\$\.([A-Za-z_]+)")
WHOLE_MAX = 1 << 53


def mapping(value: Any) -> dict[str, Any]:
    """A copy of a JSON object; an empty one for anything else."""
    return dict(value) if isinstance(value, dict) else {}


def text(value: Any, default: str = "") -> str:
    """A text, or the default."""
    return value if isinstance(value, str) else default


def spelt(value: Any) -> str:
    """A text; of anything else, its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def number(value: Any) -> int | float:
    """A finite number, or 0."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
        return value
    return 0


def whole(value: Any, default: int) -> int:
    """A time or count: a whole number that is not negative, or the default."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= WHOLE_MAX:
        return int(value)
    return default


def tokens(value: Any) -> dict[str, Any]:
    """Token counts with nothing missing."""
    given = mapping(value)
    cache = mapping(given.get("cache"))
    made: dict[str, Any] = {name: number(given.get(name)) for name in ("input", "output", "reasoning")}
    made["cache"] = {name: number(cache.get(name)) for name in ("read", "write")}
    if "total" in given:
        made["total"] = number(given["total"])
    return made


def fill(value: dict[str, Any], **defaults: Any) -> None:
    """Give a field its default where it is missing, null, or not of the default's type."""
    for name, default in defaults.items():
        if type(value.get(name)) is not type(default):
            value[name] = default


def coax(type_: Any, value: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The typed value, without the fields that do not fit if it can do without them; and their names.

    `InvalidInput` when it cannot.
    """
    rest = {name: item for name, item in value.items() if item is not None}
    dropped: list[str] = []
    complaint: InvalidInput | None = None
    while True:
        try:
            return wire.convert(type_, rest), dropped
        except InvalidInput as error:
            found = _FIELD.search(str(error))
            if found is None or found[1] not in rest:
                raise complaint or error from error
            complaint = error
            dropped.append(found[1])
            del rest[found[1]]

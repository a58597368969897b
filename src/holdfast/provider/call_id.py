"""A tool call's id, as short and in such letters as a wire takes it. Pure.

What must stay true: two ids stay two. An id that must be changed gets a digest of the whole, so neither a
character that is replaced nor an end that is cut can make it another's; an id that fits is left alone.
"""

import hashlib
import re

_DIGEST = 12


def fitted_id(id: str, *, length_max: int, plain: bool = False) -> str:
    """The id in at most `length_max` characters; `plain`: of letters, digits, `_` and `-` alone."""
    kept = re.sub(r"[^A-Za-z0-9_-]", "_", id) if plain else id
    if kept == id and 0 < len(id) <= length_max:
        return id
    digest = hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return f"{kept[: length_max - _DIGEST - 1]}_{digest}"

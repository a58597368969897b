"""The keys of Context Sources: a namespace, then a path within it, such as `core/date`.

The namespace is plain. What follows may be the path of any file (`core/instructions/nested/My docs/ä.md`), so
spaces and every script are allowed. Refused is what neither JSON nor one line of text can hold: control
characters, line breaks and halves of surrogate pairs. To make a key of such a path, escape it first.
"""

import re
from typing import Final

from holdfast.errors import InvalidInput

BUILT_IN: Final = "core"
"""The namespace of the sources that come with Holdfast."""
KEY_CHARACTERS_MAX: Final = 5_000
"""Room for the longest path that a system takes, and an end."""

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(?:/[^/\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+)+")


def check(key: str) -> str:
    """The key, if it is one."""
    if len(key) > KEY_CHARACTERS_MAX or not _KEY.fullmatch(key):
        raise InvalidInput(
            f"{key[:80]!a} is no key of a context source: "
            f"a namespace of a-z, 0-9, '.', '_', '-', then '/' and a name, once or more, such as core/date"
        )
    return key


def is_within(key: str, namespace: str) -> bool:
    """Whether the key is the namespace itself or lies beneath it."""
    return key == namespace or key.startswith(f"{namespace}/")

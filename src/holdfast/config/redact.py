"""Settings as they may be shown: without a key, a password or a token, wherever it came from.

What must stay true: a value that was put in from the environment or a file is never shown, only the words
that asked for it.
"""

import re
from typing import Any

from holdfast.config import substitute
from holdfast.config.document import Document
from holdfast.config.merge import Origins
from holdfast.config.positions import KeyPath

HIDDEN = "…hidden…"

_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:key|keys|token|secret|password|passwd|pass|pwd|auth|authorization|credentials?|cookie)$"
    r"|api_?key|apikey|access_?key|private_?key|secret|password|credential|bearer|authtoken|accesstoken",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SECRET_PLACES = frozenset(("headers", "environment", "env"))
_SECRET_TEXT = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abpr]|AKIA|AIza|hf|gsk)[-_]?[A-Za-z0-9_\-]{12,}"
    r"|(?i:bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}"
)
_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")
_IN_QUERY = re.compile(
    r"(?<=[?&])([^=&\s]*(?:key|token|secret|sig|password)[^=&\s]*)=[^&\s#]+", re.IGNORECASE
)


def redacted(value: dict[str, Any], origins: Origins) -> dict[str, Any]:
    """The settings, safe to show."""
    shown = _shown(value, (), origins)
    assert isinstance(shown, dict)
    return shown


def text(value: str) -> str:
    """A text without the secrets that can be told by their shape."""
    value = _IN_URL.sub(f"{HIDDEN}@", _SECRET_TEXT.sub(HIDDEN, value))
    return _IN_QUERY.sub(lambda found: f"{found[1]}={HIDDEN}", value)


def _shown(value: Any, path: KeyPath, origins: Origins) -> Any:
    match value:
        case dict():
            return {
                key: _secret(item) if _is_secret(key, item, path) else _shown(item, (*path, key), origins)
                for key, item in value.items()
            }
        case list():
            return _list(value, path, origins)
        case str():
            return text(_as_written(value, path, origins))
        case _:
            return value


def _list(items: list[Any], path: KeyPath, origins: Origins) -> list[Any]:
    """What follows an option such as `--token` is a secret too."""
    found = []
    for index, item in enumerate(items):
        before = items[index - 1] if index else None
        named = isinstance(before, str) and before.startswith("-") and _named_secret(before.lstrip("-"))
        found.append(HIDDEN if named else _shown(item, (*path, index), origins))
    return found


def _as_written(value: str, path: KeyPath, origins: Origins) -> str:
    """The text of the file, where something was put into it."""
    for length in range(len(path), 0, -1):
        origin = origins.get(path[:length])
        if origin is None:
            continue
        if origin.document is None or not substitute.refers(origin.document.value):
            return value
        written = _at(origin.document, (*origin.path, *path[length:]))
        return written if isinstance(written, str) else HIDDEN
    return value


def _at(document: Document, path: KeyPath) -> Any:
    found: Any = document.value
    for key in path:
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError):
            return None
    return found


def _is_secret(key: str, item: Any, path: KeyPath) -> bool:
    if path and path[-1] in _SECRET_PLACES and isinstance(item, str):
        return True
    return isinstance(item, str) and _named_secret(key)


def _named_secret(name: str) -> bool:
    return _SECRET_NAME.search(_CAMEL.sub("_", name)) is not None


def _secret(item: str) -> str:
    """What stands for a secret; the words that ask for one from elsewhere may be seen."""
    return item if substitute.REFERENCE.fullmatch(item) else HIDDEN

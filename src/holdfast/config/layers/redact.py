"""Settings as they may be shown: without a key, a password or a token, wherever it came from.

What must stay true: a value that was put in from the environment or a file is never shown, only the words
that asked for it.
"""

import re
from collections.abc import Iterator
from typing import Any

from holdfast.config.documents import substitute
from holdfast.config.documents.document import Document
from holdfast.config.documents.positions import KeyPath
from holdfast.config.layers.merge import Origins
from holdfast.secret_text import HIDDEN, without_secrets

_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:key|keys|token|secret|password|passwd|pass|pwd|auth|authorization|credentials?|cookie)$"
    r"|api_?key|apikey|access_?key|private_?key|secret|password|credential|bearer|authtoken|accesstoken",
    re.IGNORECASE,
)
_SECRETS_NAME = re.compile(r"(?:^|[_\-.])(?:tokens|passwords|auths|cookies)$", re.IGNORECASE)
"""Of such names only what holds several values: numbers go by them too (`max_tokens`)."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORDS = frozenset(("allow", "ask", "deny", "primary", "subagent", "all"))
"""What settings of older names become."""
_SECRET_PLACES = frozenset(("headers", "environment", "env"))
_NAMES = frozenset(("agent", "command", "provider", "models", "mcp", "formatter", "lsp", "references"))
"""Settings whose keys are names that a user gave: an agent called `auth` is no secret."""
_HEADER_OPTIONS = frozenset(("-H", "--header", "--headers"))
_USER_OPTIONS = frozenset(("-u", "--user", "--proxy-user"))
_ASSIGNED = re.compile(r"(?<![\w?&])(-{0,2}[A-Za-z][\w.\-]*)=(?=\S)(\"[^\"]*\"|'[^']*'|\S+)")
_HEADER = re.compile(r"([A-Za-z][\w\-]*)\s*:\s*\S.*", re.DOTALL)


def redacted(value: dict[str, Any], origins: Origins) -> dict[str, Any]:
    """The settings, safe to show."""
    shown = _shown(value, (), origins)
    assert isinstance(shown, dict)
    return shown


def text(value: str) -> str:
    """A text without the secrets that are known by their shape."""
    return _ASSIGNED.sub(_assigned, without_secrets(value))


def named_secret(name: str) -> bool:
    """Whether what goes by that name is a secret."""
    return _SECRET_NAME.search(_CAMEL.sub("_", name)) is not None


def _assigned(found: re.Match[str]) -> str:
    """`--api-key=…` and `API_KEY=…`; the words that ask for a secret from elsewhere may be seen."""
    if found[1] in ("--header", "--headers"):
        return f"{found[1]}={HIDDEN}"
    named = named_secret(found[1].lstrip("-")) and not substitute.REFERENCE.fullmatch(found[2])
    return f"{found[1]}={HIDDEN}" if named else found[0]


def _shown(value: Any, path: KeyPath, origins: Origins) -> Any:
    match value:
        case dict():
            return {
                key: _hidden(item) if _is_secret(key, item, path) else _shown(item, (*path, key), origins)
                for key, item in value.items()
            }
        case list():
            return _list(value, path, origins)
        case str():
            return text(_as_written(value, path, origins))
        case _:
            return value


def _list(items: list[Any], path: KeyPath, origins: Origins) -> list[Any]:
    """What follows an option such as `--token` is a secret too, and so may be a header."""
    found = []
    for index, item in enumerate(items):
        before = items[index - 1] if index else None
        shown = _shown(item, (*path, index), origins)
        if isinstance(before, str) and before.startswith("-") and "=" not in before:
            if before in _HEADER_OPTIONS:
                shown = _header(shown)
            elif before in _USER_OPTIONS or named_secret(before.lstrip("-")):
                shown = HIDDEN
        elif isinstance(item, str) and item.startswith(("-H", "--header=", "--headers=")) and ":" in item:
            shown = HIDDEN
        found.append(shown)
    return found


def _header(shown: Any) -> str:
    found = _HEADER.fullmatch(shown) if isinstance(shown, str) else None
    return f"{found[1]}: {HIDDEN}" if found else HIDDEN


def _as_written(value: str, path: KeyPath, origins: Origins) -> str:
    """The text of the file, where something was put into it."""
    for length in range(len(path), 0, -1):
        origin = origins.get(path[:length])
        if origin is None:
            continue
        if origin.document is None or not substitute.refers(origin.document.value):
            return value
        written = _at(origin.document, (*origin.path, *path[length:]))
        if isinstance(written, str):
            return written
        # It stands elsewhere there, under an older name: what was written in so many words may be seen.
        return value if value in _WORDS or value in _texts(origin.document.value) else HIDDEN
    return value


def _texts(value: Any) -> Iterator[str]:
    """Every text of a document, as it is written."""
    match value:
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str():
            yield value
        case _:
            return


def _at(document: Document, path: KeyPath) -> Any:
    found: Any = document.value
    for key in path:
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError):
            return None
    return found


def _is_secret(key: str, item: Any, path: KeyPath) -> bool:
    rules = path[:1] == ("permission",) or (path[:1] == ("agent",) and path[2:3] == ("permission",))
    if item is None or isinstance(item, bool) or rules:
        return False
    if isinstance(item, dict) and path and path[-1] in _NAMES:
        return False
    if path and path[-1] in _SECRET_PLACES and isinstance(item, (str, list)):
        return True
    if isinstance(item, (dict, list)) and _SECRETS_NAME.search(_CAMEL.sub("_", key)):
        return True
    return named_secret(key)


def _hidden(item: Any) -> Any:
    """What stands for a secret; the words that ask for one from elsewhere may be seen."""
    match item:
        case None | bool():
            return item
        case dict():
            return {key: _hidden(inner) for key, inner in item.items()}
        case list():
            return [_hidden(inner) for inner in item]
        case str() if substitute.REFERENCE.fullmatch(item):
            return item
        case _:
            return HIDDEN

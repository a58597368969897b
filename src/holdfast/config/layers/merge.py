"""Lays one layer over others: objects are merged key by key, lists of plugins and instructions are joined,
everything else is replaced, and so is an MCP server that leads elsewhere. Every value remembers which
document it came from.

What must stay true: the order of permission keys, which is their meaning. A key keeps the place that its
first layer gave it; an action for everything replaces every earlier one.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.config.documents.document import Document
from holdfast.config.documents.positions import KeyPath
from holdfast.schema.permission import Rule

_JOINED = frozenset((("plugin",), ("instructions",)))


class Origin(msgspec.Struct, frozen=True):
    """Where a value was set: a file, or a variable of the environment."""

    source: str
    document: Document | None = None
    path: KeyPath = ()

    def __str__(self) -> str:
        if self.document is None:
            return self.source
        return f"{self.source}:{self.document.line_of(self.path)[0]}"


Origins = dict[KeyPath, Origin]


class Merged:
    """What the layers so far add up to."""

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self.origins: Origins = {}

    def lay(self, value: dict[str, Any], origin: Origin) -> None:
        """Lay a layer over those below."""
        self._objects(self.value, value, (), origin)

    def set(self, path: tuple[str, ...], value: Any, origin: Origin) -> None:
        """Set one value, whatever stood there."""
        target = self.value
        for key in path[:-1]:
            target = target.setdefault(key, {})
        self._put(target, path[-1], value, path, origin)

    def drop(self, path: KeyPath) -> None:
        """Take a value away, as if it had not been set."""
        target: Any = self.value
        for key in path[:-1]:
            target = target[key]
        self._forget(target.pop(path[-1]), path)

    def _objects(self, into: dict[str, Any], value: dict[str, Any], path: KeyPath, origin: Origin) -> None:
        for key, item in value.items():
            below = (*path, key)
            old = into.get(key)
            if below in _JOINED and isinstance(item, list):
                self._join(into, key, item, below, origin)
            elif _is_permission(below):
                self._permission(into, key, item, below, origin)
            elif (
                isinstance(old, dict) and isinstance(item, dict) and not _is_another_server(below, old, item)
            ):
                self._objects(old, item, below, origin)
            else:
                self._put(into, key, item, below, origin)

    def _put(self, into: dict[str, Any], key: Any, value: Any, path: KeyPath, origin: Origin) -> None:
        if key in into:
            self._forget(into[key], path)
        into[key] = _copied(value)
        for leaf in leaves(value, path):
            self.origins[leaf] = Origin(origin.source, origin.document, leaf)

    def _join(self, into: dict[str, Any], key: str, items: list[Any], path: KeyPath, origin: Origin) -> None:
        held = into.setdefault(key, [])
        for index, item in enumerate(items):
            if item not in held:
                self.origins[(*path, len(held))] = Origin(origin.source, origin.document, (*path, index))
                held.append(_copied(item))

    def _permission(self, into: dict[str, Any], key: str, new: Any, path: KeyPath, origin: Origin) -> None:
        old = into.get(key)
        if old is None or isinstance(new, str):
            self._put(into, key, new, path, origin)
        elif isinstance(old, list) or isinstance(new, list):
            self._put(into, key, [*ordered(old), *ordered(new)], path, origin)
        else:
            if isinstance(old, str):
                into[key] = old = {"*": old}
                self.origins[(*path, "*")] = self.origins.pop(path)
            for name, item in new.items():
                self._permission_key(old, name, item, (*path, name), origin)

    def _permission_key(
        self, into: dict[str, Any], key: str, new: Any, path: KeyPath, origin: Origin
    ) -> None:
        old = into.get(key)
        if old is None or isinstance(new, str):
            self._put(into, key, new, path, origin)
            return
        if isinstance(old, str):
            into[key] = old = {"*": old}
            self.origins[(*path, "*")] = self.origins.pop(path)
        for pattern, action in new.items():
            self._put(old, pattern, action, (*path, pattern), origin)

    def _forget(self, value: Any, path: KeyPath) -> None:
        """Only what stood there is looked at: untrusted layers may have very many values."""
        self.origins.pop(path, None)
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in items:
            self._forget(item, (*path, key))


def ordered(value: Any) -> list[dict[str, str]]:
    """A permission setting as rules in order, in the form of a document."""
    from holdfast.permission import from_config

    if isinstance(value, list):
        return list(value)
    rules: list[Rule] = from_config.rules(value, "~")  # The home directory is put in later.
    return [{"permission": r.permission, "pattern": r.pattern, "action": r.action} for r in rules]


def leaves(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """The paths of what is no object, and of empty objects."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    else:
        yield path


def _is_another_server(path: KeyPath, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether an MCP entry leads elsewhere than the one below: headers and variables were for that one."""
    is_entry = path[:1] == ("mcp",) and len(path) == len(("mcp", "name"))
    return is_entry and any(key in new and new[key] != old.get(key) for key in ("command", "url"))


def _is_permission(path: KeyPath) -> bool:
    return path == ("permission",) or (len(path) == 3 and path[0] == "agent" and path[2] == "permission")


def _copied(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copied(item) for key, item in value.items()}
        case list():
            return [_copied(item) for item in value]
        case _:
            return value

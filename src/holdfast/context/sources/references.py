"""`core/references`: folders beside the project that the user's settings name for the agent to read."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from holdfast.config.loaded import Loaded
from holdfast.config.places import Places
from holdfast.context.source import ABSENT, Codec, ContextSource, Missing
from holdfast.context.sources.look import Warn, look
from holdfast.location.project import is_utf8
from holdfast.schema.wire import JsonMap
from holdfast.text import one_line

KEY = "core/references"
LISTED_MAX: Final = 100
DESCRIPTION_CHARS_MAX: Final = 1024

_INTRODUCTION = "These folders are there for you to look things up in. Read them where they help."
_CHANGED = "The reference folders have changed. This list supersedes the one that you were given before."
_GONE = "The reference folders that you were told of are no longer available."


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A folder, what it is called, and what is in it, if its settings describe it."""

    name: str
    path: str
    description: str = ""


Find = Callable[[list[str]], Sequence[Reference]]
"""Looks for the references, and is given a list for problems. Waits for the disk."""


def references(find: Find, *, warn: Warn) -> ContextSource[tuple[Reference, ...]]:
    """The source."""

    async def load() -> tuple[Reference, ...] | Missing:
        found = await look("the reference folders", lambda problems: tuple(find(problems)), warn)
        return ABSENT if found == () else found

    return ContextSource(
        key=KEY,
        codec=Codec(tuple[Reference, ...]),
        load=load,
        baseline=lambda now: f"{_INTRODUCTION}\n{_list(now)}",
        update=lambda _, now: f"{_CHANGED}\n{_list(now)}",
        removal=lambda _: _GONE,
    )


def finder(where: Places, loaded: Loaded) -> Find:
    """Looks for the references that the settings name, by name. Settings that are not trusted name none."""

    def find(problems: list[str]) -> list[Reference]:
        found: list[Reference] = []
        for name, entry in sorted((loaded.config.references or {}).items()):
            reference = _reference(name, entry, where, loaded)
            if reference is not None and len(found) < LISTED_MAX:
                found.append(reference)
            else:
                problems.append(
                    f"reference {one_line(name, DESCRIPTION_CHARS_MAX)!r} is left out: "
                    "it names no folder of this machine"
                )
        return found

    return find


def _reference(name: str, entry: str | JsonMap, where: Places, loaded: Loaded) -> Reference | None:
    named = entry if isinstance(entry, str) else entry.get("path")
    description = "" if isinstance(entry, str) else entry.get("description") or ""
    if not isinstance(named, str) or not named or not isinstance(description, str):
        return None
    base = _base(name, where, loaded)
    path = os.path.normpath(where.home / named[2:] if named.startswith("~/") else base / named)
    # Unlike the method of Path, this is false, and no error, for what cannot be.
    if not is_utf8(path) or not os.path.isdir(path):  # noqa: PTH112
        return None
    return Reference(
        one_line(name, DESCRIPTION_CHARS_MAX), path, one_line(description, DESCRIPTION_CHARS_MAX)
    )


def _base(name: str, where: Places, loaded: Loaded) -> Path:
    """Relative paths begin where the setting stands."""
    for key in (("references", name), ("references", name, "path")):
        origin = loaded.origins.get(key)
        if origin is not None and origin.document is not None:
            return origin.document.folder
    return where.directory


def _list(shown: Sequence[Reference]) -> str:
    lines = (
        f"- {each.name}: {each.path}{f' ({each.description})' * bool(each.description)}" for each in shown
    )
    return "\n".join(("<available_references>", *lines, "</available_references>"))

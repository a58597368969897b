"""Which folders of a project may configure the agent: those that the user trusts and that have not changed.

A folder that changed since counts as one that is not trusted. What must stay true: the answer for a folder is
given once, and what is loaded from it afterwards are the bytes that were looked at for that answer.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from holdfast.config.documents.document import BYTES_MAX
from holdfast.config.pins import snapshot
from holdfast.config.pins.changes import Change, changes
from holdfast.config.pins.changes import shown as shown_changes
from holdfast.config.pins.snapshot import Pins, Snapshot
from holdfast.config.places import Folder
from holdfast.errors import HoldfastError
from holdfast.person import small_file

_NAMED = "named:"


class Grant(msgspec.Struct, frozen=True):
    """The user trusts `folder` and what is below it, as it was: `pins` has those of each place in it."""

    folder: Path
    pins: Mapping[str, Mapping[str, str]]


Granted = Callable[[Path], Grant | bool]
"""Whether the user trusts a folder. True without a grant: whatever it holds, by the word of the caller."""


class Changed(msgspec.Struct, frozen=True):
    """A trusted folder that is not what it was, and what is there now, by place."""

    folder: Path
    changes: tuple[Change, ...]
    now: dict[str, Snapshot]
    why: str | None = None
    """Why it could not be compared."""

    def __str__(self) -> str:
        told = self.why or shown_changes(list(self.changes))
        return (
            f"{self.folder} changed since it was trusted, and counts as not trusted: {told}; "
            f"see `holdfast trust --diff {self.folder}`, then `holdfast trust {self.folder}`"
        )


class ProjectTrust:
    """The answers for the folders of one directory's settings."""

    def __init__(self, granted: Granted, home: Path) -> None:
        self._granted = granted
        self._home = home
        self._grants: dict[Path, Grant | bool] = {}
        self._held: dict[tuple[Path, str], bool] = {}
        self._snapshots: list[Snapshot] = []
        self._changed: dict[Path, Changed] = {}

    @property
    def changed(self) -> tuple[Changed, ...]:
        """What is not as the user trusted it, by trusted folder."""
        return tuple(self._changed.values())

    @property
    def pins(self) -> tuple[tuple[str, Pins], ...]:
        """What was compared and is as the user trusted it, by folder."""
        return tuple((str(each.folder), each.pins) for each in self._snapshots)

    def holds(self, folder: Path) -> bool:
        """Whether a folder may configure the agent."""
        return self._answer(
            folder,
            lambda top: place_of(folder, top),
            lambda top: snapshot.take(folder, top, self._home),
        )

    def holds_named(self, each: Folder) -> bool:
        """The same for what the environment names, which has pins of its own."""
        return self._answer(
            each.trust_path,
            lambda top: place_of_named(each, top),
            lambda top: snapshot.take_named(each, top, self._home),
        )

    def covers(self, path: Path) -> bool:
        """Whether a file is one of those that were read for the answers, or would have been."""
        return any(each.covers(path) for each in self._snapshots)

    def read(self, path: Path, *, bytes_max: int = BYTES_MAX) -> bytes | None:
        """The bytes of a file: those that were looked at, where it is the project's."""
        for each in self._snapshots:
            if each.covers(path):
                return each.read(path, bytes_max=bytes_max)
        return small_file.read(path, bytes_max=bytes_max)

    def _answer(self, folder: Path, name: Callable[[Path], str], take: Callable[[Path], Snapshot]) -> bool:
        if folder not in self._grants:
            self._grants[folder] = self._granted(folder)
        grant = self._grants[folder]
        if not isinstance(grant, Grant):
            return grant
        place = name(grant.folder)
        key = (grant.folder, place)
        if key not in self._held:
            self._held[key] = self._compare(grant, place, folder, take)
        return self._held[key]

    def _compare(self, grant: Grant, place: str, folder: Path, take: Callable[[Path], Snapshot]) -> bool:
        below = place_of(folder, grant.folder)
        try:
            taken = take(grant.folder)
        except HoldfastError as error:
            self._note(grant.folder, [Change(below, "unreadable")], {}, str(error))
            return False
        found = changes(below, grant.pins.get(place, {}), taken.pins)
        if found:
            self._note(grant.folder, found, {place: taken})
            return False
        self._snapshots.append(taken)
        return True

    def _note(
        self, folder: Path, found: list[Change], now: dict[str, Snapshot], why: str | None = None
    ) -> None:
        before = self._changed.get(folder, Changed(folder, (), {}))
        self._changed[folder] = Changed(
            folder, (*before.changes, *found), {**before.now, **now}, before.why or why
        )


def place_of(folder: Path, top: Path) -> str:
    """The name of a folder among the pins of a trusted one."""
    return os.path.relpath(folder, top)


def place_of_named(each: Folder, top: Path) -> str:
    """The name of what the environment names; a folder's own pins may stand beside it."""
    return f"{_NAMED}{place_of(each.path if each.kind == 'folder' else each.path / each.names[0], top)}"


def place_named(place: str, change: Callable[[str], str]) -> str:
    """The place with another path."""
    return change(place) if is_path(place) else f"{_NAMED}{change(place.removeprefix(_NAMED))}"


def is_path(place: str) -> bool:
    """Whether a place is a folder of the project, and not one that the environment names."""
    return not place.startswith(_NAMED)

"""What changed between the pins of a folder and what is there now."""

import os
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from holdfast.config.pins.snapshot import Pins

NAMED_MAX: Final = 10


class Change(msgspec.Struct, frozen=True):
    """A file that steers the agent and is not what was trusted; `path` is relative to the trusted folder."""

    path: str
    kind: Literal["added", "changed", "removed", "unreadable"]

    def __str__(self) -> str:
        return self.path if self.kind == "changed" else f"{self.path} ({self.kind})"


def changes(place: str, before: Mapping[str, str], now: Pins) -> list[Change]:
    """By path. `place` is the folder that both speak of, relative to the trusted one."""
    found = []
    for name in sorted({*before, *now}):
        path = os.path.normpath(os.path.join(place, name))  # noqa: PTH118 - relative, and only shown
        if name not in now:
            found.append(Change(path, "removed"))
        elif name not in before:
            found.append(Change(path, "added"))
        elif before[name] != now[name]:
            found.append(Change(path, "changed"))
    return found


def shown(found: list[Change]) -> str:
    """The first of them in a line; the files of a project decide how many there are."""
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    return ", ".join(map(str, found[:NAMED_MAX])) + more

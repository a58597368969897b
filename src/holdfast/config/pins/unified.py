"""The difference between a folder as it was trusted and as it is now, file by file."""

from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.config.pins.changes import Change, changes
from holdfast.config.pins.former import Texts
from holdfast.config.pins.project_trust import is_path
from holdfast.config.pins.snapshot import LINK, Snapshot

LINES_MAX: Final = 20_000


class FileDiff(msgspec.Struct, frozen=True):
    """One file: how it changed, and the lines of a unified diff, or a line that says why there are none."""

    change: Change
    lines: list[str]


def diffs(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Snapshot], kept: Texts
) -> list[FileDiff]:
    """What was added, changed and removed in all places, by place and path."""
    found = []
    for place in sorted({*before, *now}):
        old, taken = before.get(place, {}), now.get(place)
        pins = {} if taken is None else taken.pins
        below = place if is_path(place) else "."
        for name in sorted({*old, *pins}):
            one = {key: value for key, value in old.items() if key == name}
            other = {key: value for key, value in pins.items() if key == name}
            for change in changes(below, one, other):
                new = None if taken is None else taken.texts.get(name)
                found.append(FileDiff(change, _lines(change, old.get(name), pins.get(name), new, kept)))
    return found


def _lines(change: Change, old: str | None, pin: str | None, new: bytes | None, kept: Texts) -> list[str]:
    from difflib import unified_diff

    before = _before(old, kept)
    after = _after(pin, new)
    if before is None:
        return ["The text that was trusted is not kept; this is what is there now:", *(after or [])]
    if after is None:
        return ["It is no text, so it cannot be shown."]
    if len(before) + len(after) > LINES_MAX:
        return [f"It has more than {LINES_MAX} lines, so they are not compared."]
    origin = "/dev/null" if old is None else f"a/{change.path}"
    target = "/dev/null" if pin is None else f"b/{change.path}"
    return list(unified_diff(before, after, origin, target, lineterm=""))


def _before(pin: str | None, kept: Texts) -> list[str] | None:
    if pin is None:
        return []
    return [pin] if pin.startswith(LINK) else None if pin not in kept else kept[pin].split("\n")


def _after(pin: str | None, data: bytes | None) -> list[str] | None:
    if pin is None:
        return []
    if pin.startswith(LINK) or data is None:
        return [pin]
    try:
        return data.decode().split("\n")
    except UnicodeDecodeError:
        return None

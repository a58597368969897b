"""Which checks a change calls for, and the commands that they stand for. Pure."""

from collections.abc import Sequence

import msgspec

from holdfast.config.checks import Check
from holdfast.tools import glob_pattern

FILE = "$FILE"
FILES = "$FILES"


class Changed(msgspec.Struct, frozen=True):
    """A file that was changed: where it lies, and its path seen from the top of the project."""

    path: str
    relative: str


def concerned(check: Check, changed: Sequence[Changed]) -> list[Changed]:
    """The files that a check is for. `BadGlob` where its settings have one that cannot be used."""
    if not check.files:
        return list(changed)
    matchers = [glob_pattern.matcher(pattern) for pattern in check.files]
    return [each for each in changed if any(matches(each.relative) for matches in matchers)]


def commands(check: Check, changed: Sequence[Changed]) -> list[list[str]]:
    """What is run for these files: once for all, or once for each where the command names a single one."""
    paths = [each.path for each in changed]
    if not paths:
        return []
    whole = [path for part in check.command for path in (paths if part == FILES else [part])]
    if not any(FILE in part for part in check.command if part != FILES):
        return [whole]
    return [
        [path for part in check.command for path in (paths if part == FILES else [part.replace(FILE, one)])]
        for one in paths
    ]

"""Merges two versions of a text that have one version in common, by git's own `merge-file`.

Line ends and a missing line feed at the end come through as they are. What must stay true: the folder holds
contents of the user's files, so it is private, and gone when the work is done; every call is bounded.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast import git
from holdfast.errors import ContextError
from holdfast.sessions.undo.plan import Merge, Merged, Regions

TIMEOUT_S: Final = 30.0
FOLDER: Final = "merge-"
REGIONS_MAX: Final = 20

_HUNK: Final = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_FAILED: Final = 128


@contextmanager
def merger(place: Path) -> Iterator[Merge]:
    """What merges, with a temporary folder below `place`."""
    with tempfile.TemporaryDirectory(prefix=FOLDER, dir=place) as folder:
        yield lambda base, ours, theirs: merge(Path(folder), base, ours, theirs)


def merge(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """`ours` with the changes from `base` to `theirs`; regions are lines of `ours`."""
    if ours in (base, theirs):
        return Merged(theirs)
    if theirs == base:
        return Merged(ours)
    if any(b"\0" in each for each in (base, ours, theirs)):
        return Merged(reason="it is binary and has been changed since")
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(data)
    done = _git(folder, "merge-file", "-p", "-q", "ours", "base", "theirs")
    if done.returncode == 0:
        return Merged(done.stdout)
    if done.returncode >= _FAILED:
        return Merged(reason="git cannot merge it")
    return Merged(reason="the same lines have been changed since", lines=_regions(folder))


def _regions(folder: Path) -> Regions:
    """The lines of `ours` that were changed where `theirs` was changed too."""
    mine, other = _hunks(folder, "ours"), _hunks(folder, "theirs")
    found: list[tuple[int, int]] = []
    for start, end, first, last in mine:
        # Changes that touch are in conflict too.
        if any(begin <= end and start <= stop for begin, stop, _, _ in other):
            found.append((first, max(first, last)))
    return tuple(found[:REGIONS_MAX])


def _hunks(folder: Path, name: str) -> list[tuple[int, int, int, int]]:
    """The changes from `base`: where they begin and end there (in gaps between lines), and their lines."""
    done = _git(folder, "diff", "--no-index", "--no-color", "-U0", "base", name)
    found = []
    for hunk in _HUNK.finditer(done.stdout):
        old, count, new, added = (int(each) if each is not None else 1 for each in hunk.groups())
        start = old - 1 if count else old
        found.append((start, start + count, new if added else max(1, new), new + added - 1))
    return found


def _git(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    try:
        return git.run(arguments, cwd=folder, timeout_s=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ContextError(f"git {arguments[0]} took longer than {TIMEOUT_S:g} s") from error
    except OSError as error:
        raise ContextError(f"git cannot be started: {error.strerror or error}") from error

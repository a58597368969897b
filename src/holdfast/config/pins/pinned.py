"""What a folder is trusted as: the places in it that hold settings, each with its pins.

The folder itself must be readable as a whole. Places below it are looked for within a bound; one that is not
found, or cannot be read, has no pins, so it is asked about when a session first works there.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from holdfast.config.pins import snapshot
from holdfast.config.pins.project_trust import place_of, place_of_named
from holdfast.config.pins.snapshot import Snapshot
from holdfast.config.places import FOLDERS, IN_PROJECT, Folder
from holdfast.errors import HoldfastError

ENTRIES_MAX: Final = 50_000
PLACES_MAX: Final = 500
PINS_MAX: Final = 5_000

_PASSED_OVER = frozenset((".git", "node_modules", "__pycache__", ".venv", "site-packages", *FOLDERS))
_TOKENS = frozenset((*IN_PROJECT, *FOLDERS, *(path.parts[0] for path in snapshot.SKILL_FOLDERS)))


def pinned(folder: Path, home: Path, named: Sequence[Folder] = ()) -> dict[str, Snapshot]:
    """The places of a folder as they are now; `named` are those that the environment names in it."""
    found = {".": snapshot.take(folder, folder, home)}
    count = len(found["."].pins)
    for each in named:
        found[place_of_named(each, folder)] = snapshot.take_named(each, folder, home)
    for path in _places_below(folder):
        try:
            taken = snapshot.take(path, folder, home)
        except HoldfastError:
            continue
        count += len(taken.pins)
        if count > PINS_MAX or len(found) >= PLACES_MAX:
            break
        if taken.pins:
            found[place_of(path, folder)] = taken
    return found


def _places_below(top: Path) -> Iterator[Path]:
    """Folders with something that looks like settings, the nearest first; no link is followed."""
    waiting = deque([top])
    left = ENTRIES_MAX
    while waiting and left > 0:
        folder = waiting.popleft()
        below: list[Path] = []
        is_place = False
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    left -= 1
                    if left == 0:
                        break
                    is_place = is_place or each.name in _TOKENS
                    if each.name not in _PASSED_OVER and each.is_dir(follow_symlinks=False):
                        below.append(folder / each.name)
        except OSError:
            continue
        waiting.extend(sorted(below))
        if is_place and folder != top:
            yield folder

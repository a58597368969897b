"""The folders and files of a project that are worth watching: not git's own, not what it ignores, no links.

What must stay true: nothing outside the top is listed, whatever links say; the number of folders is bounded.
"""

import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.location import write_path

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FOLDERS_MAX: Final = 5_000
RULES_FILE: Final = ".gitignore"
_RULES_BYTES_MAX: Final = 256 * 1024
_NEVER: Final = (".git", ".hg", ".svn", ".jj", "node_modules")


class WatchedTree:
    """One project. `ignore` are patterns of the user's settings, in the form of git's."""

    def __init__(self, top: Path, ignore: Sequence[str] = ()) -> None:
        self._top = str(top)
        self._own = _spec(list(ignore))
        self._rules: dict[str, GitIgnoreSpec | None] = {}

    def folders(self) -> tuple[list[str], bool]:
        """The folders to watch, the outer ones first, and whether these are all. Reads git's rules anew."""
        self._rules = {}
        found: list[str] = []
        waiting = deque([self._top])
        while waiting and len(found) < FOLDERS_MAX:
            folder = waiting.popleft()
            try:
                with os.scandir(folder) as entries:
                    below = sorted(each.path for each in entries if each.is_dir(follow_symlinks=False))
            except OSError:
                continue  # It went away, or is not ours to read.
            found.append(folder)
            waiting += [each for each in below if not self.ignores(each, folder=True)]
        return found, not waiting

    def ignores(self, path: str, *, folder: bool = False) -> bool:
        """Whether nothing is to be said of a path below a folder that is watched."""
        above, name = os.path.split(path)
        if name in _NEVER or name.startswith(write_path.TEMPORARY):
            return True
        inside = os.path.relpath(path, self._top)
        if self._own is not None and self._own.match_file(f"{inside}/" if folder else inside):
            return True
        # The rules of the nearest folder that has one about this path win.
        while above.startswith(self._top):
            spec = self._rules_of(above)
            if spec is not None:
                below = os.path.relpath(path, above)
                verdict = spec.check_file(f"{below}/" if folder else below).include
                if verdict is not None:
                    return verdict
            if above == self._top:
                return False
            above = os.path.dirname(above)  # noqa: PTH120 - a text
        return True

    def _rules_of(self, folder: str) -> "GitIgnoreSpec | None":
        if folder not in self._rules:
            names = [RULES_FILE, ".git/info/exclude"] if folder == self._top else [RULES_FILE]
            self._rules[folder] = _spec([line for name in names for line in _lines(f"{folder}/{name}")])
        return self._rules[folder]


def _lines(path: str) -> list[str]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_RULES_BYTES_MAX).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _spec(lines: list[str]) -> "GitIgnoreSpec | None":
    if not lines:
        return None
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:  # A pattern that is none.
        return None

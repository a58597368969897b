"""Files that steer the next run, as they are before and after a command: what it changed is named.

Commands may write to settings, plugins and instructions; trust asks about them again when they differ. A git
folder's hooks and configuration are protected where they exist, and are named here where a command made them.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdfast.permission import steering

FILES_MAX: Final = 2000
NAMED_MAX: Final = 10
_GIT: Final = ".git"
_OF_GIT: Final = ("hooks", "config", "config.worktree", "commondir")
# Ours to write: plans and what package managers put beside plugins.
_SKIPPED: Final = ("node_modules", "plans")

Marks = dict[str, tuple[int, int, int]]
"""By path: inode, size and the time of the last change, which no program can set."""


def marks(worktree: Path, directory: Path) -> Marks:
    """What steers a session in `directory`, in its folders up to the top of the project. It blocks."""
    found: Marks = {}
    for folder in _folders(worktree, directory):
        for path in _steering(folder):
            if len(found) >= FILES_MAX:
                return found
            try:
                stat = path.lstat()
            except OSError:
                continue
            found[str(path)] = (stat.st_ino, stat.st_size, stat.st_ctime_ns)
    return found


def changed(before: Marks, after: Marks) -> list[str]:
    """The paths that differ, new and removed ones included; at most `NAMED_MAX`."""
    paths = sorted({*before, *after})
    return [path for path in paths if before.get(path) != after.get(path)][:NAMED_MAX]


def _folders(worktree: Path, directory: Path) -> Iterator[Path]:
    yield directory
    if directory.is_relative_to(worktree):
        yield from (each for each in directory.parents if each.is_relative_to(worktree))


def _steering(folder: Path) -> Iterator[Path]:
    for name in sorted(_names(folder)):
        if not steering.steered(name):
            continue
        path = folder / name
        if name == _GIT:
            yield from _of_git(path)
        elif path.is_dir() and not path.is_symlink():
            yield from _below(path)
        else:
            yield path


def _of_git(git: Path) -> Iterator[Path]:
    if git.is_symlink() or not git.is_dir():
        yield git  # Another folder may take its place.
        return
    for name in _OF_GIT:
        path = git / name
        yield from _below(path) if path.is_dir() else (path,)


def _below(folder: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        yield from (Path(above) / name for name in sorted(files))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are wanted
    except OSError:
        return []

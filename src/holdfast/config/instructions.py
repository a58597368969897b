"""Instruction files that settings name: a path or glob, or a URL, and whose word it is.

What must stay true: an entry of a folder that is not trusted never leads out of the worktree, through links
neither, not even to look. It is checked when files are looked for, since a link can be planted after the
settings were read; and looking is bounded, since a pattern can be made to match without end.
"""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import msgspec

from holdfast.config import places

FILES_MAX = 100
PARTS_MAX = 40
LOOKS_MAX = 10_000
"""How many folders and entries of them an untrusted pattern may make us look at."""


class InstructionSource(msgspec.Struct, frozen=True):
    """One entry. `contained`: only files inside the worktree."""

    entry: str
    folder: Path
    """Where the setting stands."""
    contained: bool

    @property
    def is_url(self) -> bool:
        """Whether it must be fetched."""
        return self.entry.startswith(("https://", "http://"))


def harmless(entry: object) -> bool:
    """Whether an entry is a plain path below its folder."""
    if not isinstance(entry, str) or not entry.strip() or "\0" in entry or "://" in entry:
        return False
    path = PurePosixPath(entry.replace("\\", "/"))
    return not path.is_absolute() and ".." not in path.parts and not entry.startswith(("~", "$"))


def files(source: InstructionSource, *, directory: Path, worktree: Path, home: Path) -> list[Path]:
    """The files that an entry names: relative ones in each folder from the directory up to the worktree."""
    if source.is_url:
        return []
    if source.contained:
        matches = _Contained(worktree).matches(source.entry, directory)
    else:
        matches = _matches(source.entry, directory, worktree, home)
    found: list[Path] = []
    for path in matches:
        if len(found) == FILES_MAX:
            break
        allowed = not source.contained or places.inside(path, worktree)
        if allowed and path.is_file() and path not in found:
            found.append(path)
    return found


class _Contained:
    """Looks for untrusted files: a link is followed only where it is named and stays in the worktree."""

    def __init__(self, worktree: Path) -> None:
        self._worktree = worktree
        self._looks = 0

    def matches(self, entry: str, directory: Path) -> Iterator[Path]:
        words = Path(entry).parts
        # One `**` after another says nothing new.
        parts = tuple(word for at, word in enumerate(words) if word != "**" or words[at - 1 : at] != ("**",))
        if not harmless(entry) or not 0 < len(parts) <= PARTS_MAX:
            return
        for folder in reversed(places.downward(self._worktree, directory)):
            yield from self._below(folder, parts)

    def _below(self, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
        head, *rest = parts
        if head != "**" and not any(sign in head for sign in "*?["):
            yield from self._named(folder / head, tuple(rest))
            return
        if head == "**" and rest:
            yield from self._below(folder, tuple(rest))
        for each in self._entries(folder):
            is_folder = each.is_dir(follow_symlinks=False)
            if head == "**" and is_folder:
                yield from self._below(Path(each.path), parts)
            elif head == "**" and not rest:
                yield Path(each.path)
            elif head != "**" and fnmatchcase(each.name, head):
                if not rest:
                    yield Path(each.path)
                elif is_folder:
                    yield from self._below(Path(each.path), tuple(rest))

    def _named(self, path: Path, rest: tuple[str, ...]) -> Iterator[Path]:
        if not os.path.lexists(path) or not places.inside(path, self._worktree):
            return
        if not rest:
            yield path
        elif os.path.isdir(path):  # noqa: PTH112 - false, and no error, for what is not ours to see
            yield from self._below(path, rest)

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """Sorted, and fewer and fewer: what was looked at counts for the whole entry."""
        found: list[os.DirEntry[str]] = []
        if self._looks == LOOKS_MAX:
            return found
        self._looks += 1  # A look at an empty folder is one too.
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    if self._looks == LOOKS_MAX:
                        break
                    self._looks += 1
                    found.append(each)
        except OSError:
            return []
        return sorted(found, key=lambda each: each.name)


def _matches(entry: str, directory: Path, worktree: Path, home: Path) -> Iterator[Path]:
    path = home / entry[2:] if entry.startswith("~/") else Path(entry)
    try:
        if path.is_absolute():
            yield from sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
            return
        for folder in reversed(places.downward(worktree, directory)):
            yield from sorted(folder.glob(str(path)))
    except (OSError, ValueError, NotImplementedError):
        return  # What cannot be looked for is not there.

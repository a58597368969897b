"""Instruction files that settings name: a path or glob, or a URL, and whose word it is.

What must stay true: an entry of a folder that nobody trusts never leads out of the worktree, through links
neither. It is checked when files are looked for, since a link can be planted after the settings were read.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from holdfast.config import places

FILES_MAX = 100


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
    found: list[Path] = []
    for path in _matches(source.entry, directory, worktree, home):
        if len(found) == FILES_MAX:
            break
        allowed = not source.contained or places.inside(path, worktree)
        if allowed and path.is_file() and path not in found:
            found.append(path)
    return found


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

"""All shadow repositories of the user: how much room they take, and what in them belongs to nobody."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from holdfast.errors import HoldfastError
from holdfast.location.shadow.place import folders_of, session_of
from holdfast.location.shadow.repository import WORKTREE, Shadow


class Orphans(msgspec.Struct, frozen=True, kw_only=True):
    """What one repository keeps of sessions that are not known, or for a worktree that is gone."""

    git_dir: str
    worktree: str
    bytes: int
    """How much room all of the repository takes."""
    is_gone: bool
    sessions: tuple[str, ...] = ()


def repositories(data: Path) -> Iterator[Shadow]:
    """Every repository below the user's data."""
    for path in sorted((data / "snapshot").glob(f"*/*/{WORKTREE}")):
        try:
            yield Shadow(path.parent, Path(os.fsdecode(path.read_bytes())))
        except OSError:  # Another process has just removed it.
            continue


def size(data: Path) -> int:
    """How much room they take."""
    return sum(each.size() for each in repositories(data))


def holds(data: Path, sessions: Collection[str]) -> bool:
    """Whether anything is kept of some sessions."""
    tops = [shadow.git_dir / "refs" for shadow in repositories(data)]
    return any((top / folder).is_dir() for top in tops for id in sessions for folder in folders_of(id))


def forget(data: Path, sessions: Collection[str]) -> None:
    """Keep nothing of some sessions any more, and give back its room."""
    for shadow in repositories(data):
        known = {session_of(each.folder) for each in shadow.kept()} & set(sessions)
        try:
            for folder in (each for id in known for each in folders_of(id)):
                shadow.drop(folder)
            if known:
                shadow.sweep()
        except (HoldfastError, OSError):
            continue  # `doctor` finds what is left.


def orphans(data: Path, known: Collection[str]) -> list[Orphans]:
    """The repositories that keep something for nobody. `known` are the sessions there are."""
    found = []
    for shadow in repositories(data):
        unknown = {session_of(each.folder) for each in shadow.kept()} - set(known)
        is_gone = not shadow.worktree.is_dir()
        if unknown or is_gone:
            found.append(
                Orphans(
                    git_dir=str(shadow.git_dir),
                    worktree=str(shadow.worktree),
                    bytes=shadow.size(),
                    is_gone=is_gone,
                    sessions=tuple(sorted(unknown)),
                )
            )
    return found

"""Where the shadow repository of a worktree lies, and of which worktrees there is none. Pure."""

import hashlib
import os
from pathlib import Path

from holdfast.errors import Refused


def git_dir(data: Path, project: str, worktree: Path) -> Path:
    """The folder of a worktree's shadow repository."""
    name = hashlib.sha256(os.fsencode(worktree)).hexdigest()[:40]
    return data / "snapshot" / _named(project) / name


def check(worktree: Path, home: Path, data: Path) -> None:
    """`Refused` for a worktree that is too much to keep: what holds the user's home, or our own data."""
    for holder, what in ((home, "the home directory"), (data, "Holdfast's own data")):
        if worktree == holder or worktree in holder.parents:
            raise Refused(f"{worktree} holds {what}, so no snapshots are taken of it")


def folder_of(session: str) -> str:
    """The folder of references in which the trees and contents of a session are kept, within the budget."""
    return f"sessions/{session}"


def staged_of(session: str) -> str:
    """That of a revert which is staged: nothing in it is pruned."""
    return f"staged/{session}"


def folders_of(session: str) -> tuple[str, str]:
    """Both."""
    return folder_of(session), staged_of(session)


def session_of(folder: str) -> str:
    """The session that a folder of references belongs to."""
    return folder.rpartition("/")[2]


def is_prunable(folder: str) -> bool:
    """Whether what is kept there may go when it grows too large."""
    return not folder.startswith("staged/")


def _named(project: str) -> str:
    """A project's id as the name of a folder: it may have been made elsewhere."""
    plain = project.isascii() and project.replace("-", "").replace("_", "").isalnum() and len(project) <= 80
    return project if plain else hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:40]

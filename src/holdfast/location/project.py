"""Which project a directory belongs to. The user's repository is read, never written.

The id is, in this order: the one we know for this checkout (the caller's cache), the one that OpenCode left
in `.git/opencode`, the first root commit, else `global`. Linked worktrees share their repository's id.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from holdfast.errors import InvalidInput
from holdfast.flags import FAKE_VCS, flag
from holdfast.location.root_commit import root_commit
from holdfast.location.small_text import small_text

GLOBAL = "global"

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Checkout(msgspec.Struct, frozen=True):
    """A repository as it lies on this machine: the key under which its project id is remembered."""

    common: str
    """The git directory that all its worktrees share."""
    mark: str
    """Distinguishes a repository from another one that later stands at the same path."""


Known = Callable[[Checkout], str | None]


class Location(msgspec.Struct, frozen=True):
    """A directory, the checkout around it, and the project of that checkout."""

    directory: str
    worktree: str
    project: str
    vcs: Literal["git"] | None = None
    checkout: Checkout | None = None

    @property
    def path(self) -> str:
        """The directory relative to the worktree, with forward slashes; empty at its root."""
        relative = os.path.relpath(self.directory, self.worktree)
        return "" if relative == "." else relative


def locate(directory: str | os.PathLike[str], known: Known = lambda _: None) -> Location:
    """Resolve a directory. `known` answers the project id that is on record for a checkout."""
    real = _real(directory)
    if flag(FAKE_VCS):
        # Tests of everything above git: any directory is a repository of its own.
        import hashlib

        return Location(real, real, hashlib.sha1(f"fake:{real}".encode()).hexdigest(), "git")  # noqa: S324
    found = _repository(Path(real))
    if found is None:
        return Location(real, os.path.sep, GLOBAL)
    worktree, common = found
    checkout = _checkout(common)
    project = known(checkout) or _left_by_opencode(common) or root_commit(common) or GLOBAL
    return Location(real, str(worktree), project, "git", checkout)


def _real(directory: str | os.PathLike[str]) -> str:
    text = os.fspath(directory)
    if "\0" in text or not text:
        raise InvalidInput("the directory is not a path; give the absolute path of a folder")
    real = os.path.realpath(text)
    if not os.path.isdir(real):  # noqa: PTH112 - see _folder
        raise InvalidInput(f"{text} is not a directory; create it or name another")
    if not is_utf8(real):
        raise InvalidInput(f"the name of {real!a} is not UTF-8, so no record can hold it; rename it")
    return real


def is_utf8(text: str) -> bool:
    """Whether a name can be written as JSON: one that the system gave us need not be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _repository(directory: Path) -> tuple[Path, Path] | None:
    """The top of the checkout and the git directory shared by all its worktrees."""
    for folder in (directory, *directory.parents):
        entry = folder / ".git"
        common = _folder(entry)
        if common is None and os.path.isfile(entry):  # noqa: PTH113 - see _folder
            common = _linked(entry)
            if common is None:
                return None
        if common is not None:
            return folder, common
    return None


def _checkout(common: Path) -> Checkout:
    try:
        stat = common.stat()
        mark = f"{stat.st_dev:x}-{stat.st_ino:x}"
    except OSError:
        mark = ""
    return Checkout(str(common), mark)


def _linked(entry: Path) -> Path | None:
    """The shared git directory behind the `.git` file of a linked worktree or a submodule."""
    text = small_text(entry)
    if not text.startswith("gitdir:"):
        return None
    git = _folder(entry.parent / text.removeprefix("gitdir:").strip())
    if git is None:
        return None
    common = small_text(git / "commondir")
    return _folder(git / common) if common else git


def _folder(path: Path) -> Path | None:
    """The real path of a folder that a file of the repository named; None where there is none."""
    if "\0" in str(path):
        return None
    real = os.path.realpath(path)
    # Unlike the method of Path, this is false, and no error, for what is too long or not ours to see.
    return Path(real) if is_utf8(real) and os.path.isdir(real) else None  # noqa: PTH112


def _left_by_opencode(common: Path) -> str | None:
    text = small_text(common / "opencode", follow=False)
    return text if _ID.fullmatch(text) else None

"""Which project a directory belongs to. The person's repository is read, never written.

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

GLOBAL = "global"
GIT_TIMEOUT_S = 5

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class Checkout(msgspec.Struct, frozen=True):
    """A repository as it lies on this machine: the key under which its project id is remembered."""

    common: str
    """The git directory that all its worktrees share."""
    mark: str
    """Tells a repository from another one that later stands at the same path."""


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
    project = known(checkout) or _left_by_opencode(common) or _root_commit(worktree) or GLOBAL
    return Location(real, str(worktree), project, "git", checkout)


def _real(directory: str | os.PathLike[str]) -> str:
    text = os.fspath(directory)
    if "\0" in text or not text:
        raise InvalidInput("the directory is not a path; give the absolute path of a folder")
    real = os.path.realpath(text)
    if not Path(real).is_dir():
        raise InvalidInput(f"{text} is not a directory; create it or name another")
    return real


def _repository(directory: Path) -> tuple[Path, Path] | None:
    """The top of the checkout and the git directory shared by all its worktrees."""
    for folder in (directory, *directory.parents):
        entry = folder / ".git"
        if entry.is_dir():
            return folder, Path(os.path.realpath(entry))
        if entry.is_file():
            common = _linked(entry)
            return None if common is None else (folder, common)
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
    text = _small_text(entry)
    if not text.startswith("gitdir:"):
        return None
    git = Path(os.path.realpath(entry.parent / text.removeprefix("gitdir:").strip()))
    common = _small_text(git / "commondir")
    return Path(os.path.realpath(git / common)) if common else git if git.is_dir() else None


def _small_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(4096).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _left_by_opencode(common: Path) -> str | None:
    text = _small_text(common / "opencode")
    return text if _ID.fullmatch(text) else None


def _root_commit(worktree: Path) -> str | None:
    """The least of the root commits of all branches; None in an empty repository or without git."""
    import subprocess

    command = [
        *("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
        *("-C", str(worktree), "rev-list", "--max-parents=0", "--all"),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        found = subprocess.run(
            command,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    commits = sorted(
        line for line in found.stdout.decode("ascii", "replace").split() if _COMMIT.fullmatch(line)
    )
    return commits[0] if commits and found.returncode == 0 else None

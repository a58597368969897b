"""The git folders of a checkout: which of them commands write, and what in them stays as it is.

A `.git` file names its folder, and its author is unknown: only a folder that names this checkout in turn is
believed, else a file from an archive could make any folder writable. Hooks and configuration start programs
of whoever uses git next, so they are protected. What is missing cannot be protected: no mount point is made.
"""

import os
import re
from pathlib import Path

import msgspec

from holdfast.location.small_text import small_text

_CONFIG_BYTES_MAX = 64 * 1024
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*\"?([^\"\n]*?)\"?\s*$", re.MULTILINE)
_OF_REPOSITORY = ("hooks", "config", "config.worktree")
_OF_CHECKOUT = ("commondir", "gitdir", "config.worktree", "config", "hooks")


class GitFolders(msgspec.Struct, frozen=True):
    """Real paths of what exists."""

    write: tuple[str, ...] = ()
    """Folders outside the checkout."""
    pinned: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()


def git_folders(worktree: Path) -> GitFolders:
    """What the box must know of the repository that the checkout at a real path belongs to."""
    entry = worktree / ".git"
    if entry.is_symlink():
        # A link cannot be pinned, and the folder that it names says nothing about this checkout.
        return GitFolders(protected=_there(Path(os.path.realpath(entry)), _OF_REPOSITORY))
    if entry.is_dir():
        return GitFolders(pinned=(str(entry),), protected=_there(entry, _OF_REPOSITORY))
    if not entry.is_file():
        return GitFolders()
    own = _named(entry, small_text(entry, follow=False))
    if own is None:
        return GitFolders(protected=(str(entry),))
    common = _shared(own)
    protected = (str(entry), *_there(own, _OF_CHECKOUT), *_there(common, _OF_REPOSITORY))
    write = tuple(dict.fromkeys((str(common), str(own))))
    return GitFolders(write=write, protected=tuple(dict.fromkeys(protected)))


def _named(entry: Path, text: str) -> Path | None:
    """The folder that a `.git` file names, if that folder names this checkout too."""
    if not text.startswith("gitdir:") or "\0" in text:
        return None
    own = Path(os.path.realpath(entry.parent / text.removeprefix("gitdir:").strip()))
    back = small_text(own / "gitdir")
    if back and os.path.realpath(own / back) == str(entry):
        # A linked worktree: its folder lies where its repository keeps them.
        common = _shared(own)
        return own if own.parent == common / "worktrees" and _is_repository(common) else None
    config = small_text(own / "config", bytes_max=_CONFIG_BYTES_MAX)
    named = _WORKTREE.findall(config)
    submodule = bool(named) and os.path.realpath(own / named[-1]) == str(entry.parent)
    return own if submodule and _is_repository(own) else None


def _shared(own: Path) -> Path:
    text = small_text(own / "commondir")
    return Path(os.path.realpath(own / text)) if text and "\0" not in text else own


def _is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _there(folder: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those names that stand in the folder and are no links, which nothing can be mounted on."""
    paths = [folder / name for name in names]
    return tuple(str(path) for path in paths if os.path.lexists(path) and not path.is_symlink())

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
_WORKTREES = "worktrees"
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
        others = _others(entry, worktree)
        return GitFolders(
            pinned=(str(entry), *_pinned(entry, others)),
            protected=(*_there(entry, _OF_REPOSITORY), *_protected(others)),
        )
    if not entry.is_file():
        return GitFolders()
    own = _named(entry, small_text(entry, follow=False))
    if own is None:
        return GitFolders(protected=(str(entry),))
    common = _shared(own)
    protected = (str(entry), *_there(own, _OF_CHECKOUT), *_there(common, _OF_REPOSITORY))
    write = tuple(dict.fromkeys((str(common), str(own))))
    others = [] if common == own else [each for each in _others(common, worktree) if each != own]
    return GitFolders(
        write=write,
        pinned=_pinned(common, others, always=common != own),
        protected=tuple(dict.fromkeys((*protected, *_protected(others)))),
    )


def _others(common: Path, worktree: Path) -> list[Path]:
    """The folders of linked worktrees that lie elsewhere: whoever uses git there next must find the same
    repository. One that lies in this checkout is the command's own, and may be removed by it.
    """
    try:
        found = sorted(each for each in (common / _WORKTREES).iterdir() if not each.is_symlink())
    except OSError:
        return []
    return [
        each
        for each in found
        if each.is_dir()
        and not Path(os.path.realpath(each / small_text(each / "gitdir"))).is_relative_to(worktree)
    ]


def _pinned(common: Path, others: list[Path], *, always: bool = False) -> tuple[str, ...]:
    """Those folders and the one that holds them: a new one could take its place."""
    above = common / _WORKTREES
    return (str(above), *map(str, others)) if others or always else ()


def _protected(others: list[Path]) -> tuple[str, ...]:
    return tuple(path for each in others for path in _there(each, _OF_CHECKOUT))


def _named(entry: Path, text: str) -> Path | None:
    """The folder that a `.git` file names, if that folder names this checkout too."""
    if not text.startswith("gitdir:") or "\0" in text:
        return None
    own = Path(os.path.realpath(entry.parent / text.removeprefix("gitdir:").strip()))
    back = small_text(own / "gitdir")
    if back and os.path.realpath(own / back) == str(entry):
        # A linked worktree: its folder lies where its repository keeps them.
        common = _shared(own)
        return own if own.parent == common / _WORKTREES and _is_repository(common) else None
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

"""Makes a policy from the places of a session and the settings. Every path is resolved here, once."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from holdfast.errors import ContextError
from holdfast.location.box import secrets
from holdfast.location.box.git_folders import git_folders
from holdfast.location.box.policy import BoxPolicy, CacheLayer, Mode, is_below
from holdfast.schema.config import SandboxConfig

_TMP = "/tmp"  # noqa: S108 - the folder itself, which is covered


class BoxPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Folders that a policy is about."""

    worktree: Path
    """What a command may write: the checkout, or the directory of a session without one."""
    home: Path
    own: tuple[Path, ...]
    """Ours: data, settings, state, cache, and OpenCode's. They are hidden; whatever can answer a permission
    question (the server's socket and token) must lie in one of them."""
    store: Path | None = None
    """The store's file, with those beside it that begin with its name, or its folder. It may lie anywhere."""
    readable: tuple[Path, ...] = ()
    """What stays readable in them: managed output, skills, references."""
    temporary: Path | None = None
    runtime: Path | None = None
    """The folder of the sockets of this user's programs."""
    caches: Path | None = None
    """Where commands' changes of caches are kept, by worktree."""


def compose(places: BoxPlaces, settings: SandboxConfig, *, mode: Mode) -> BoxPolicy:
    """The policy of a session. `ContextError` says why there can be none."""
    worktree = Path(os.path.realpath(places.worktree))
    _refuse(worktree, places)
    home = str(places.home)
    own = tuple(dict.fromkeys(_real((*places.own, *_of_store(places)))))
    asked = _real(_expanded(settings.reveal or (), home))
    hidden = [
        path
        for path in dict.fromkeys(_real(_hidden(places, settings, home)))
        if path in own or path not in asked
    ]
    revealed = [*_real(places.readable), *(path for path in asked if not _is_in(path, own))]
    git = git_folders(worktree)
    is_writing = mode == "workspace"
    write = (str(worktree), *git.write, *_real(_expanded(settings.write or (), home)))
    return BoxPolicy(
        mode=mode,
        network=bool(settings.network),
        write=tuple(dict.fromkeys(write)) if is_writing else (),
        temporary=None if places.temporary is None else os.path.realpath(places.temporary),
        caches=_layers(places, settings, worktree, home, keep=is_writing),
        hidden=tuple(hidden),
        revealed=(
            *(() if is_writing else (str(worktree), *git.write)),  # They may lie in /tmp, which is covered.
            *(path for path in dict.fromkeys(revealed) if _is_in(path, (*hidden, _TMP))),
        ),
        pinned=(*git.pinned, *_between(write, hidden)) if is_writing else (),
        protected=git.protected if is_writing else (),
        sockets=(*_real(_expanded(settings.sockets or (), home)), *secrets.LOOKUPS),
    )


def _refuse(worktree: Path, places: BoxPlaces) -> None:
    home = Path(os.path.realpath(places.home))
    if worktree == Path("/"):
        why = "it is the whole machine"
    elif home.is_relative_to(worktree):
        why = "it is your home directory" if home == worktree else "your home directory lies in it"
    elif any(Path(os.path.realpath(each)).is_relative_to(worktree) for each in places.own):
        why = "Holdfast's own files lie in it"
    else:
        return
    raise ContextError(f"no box can be built around {worktree}: {why}; work in a folder of its own")


def _hidden(places: BoxPlaces, settings: SandboxConfig, home: str) -> Iterable[Path]:
    yield from places.own
    yield from _of_store(places)
    yield from (places.home / name for name in secrets.IN_HOME)
    if places.runtime is not None:
        yield places.runtime
    yield from _expanded(settings.hide or (), home)


def _of_store(places: BoxPlaces) -> list[Path]:
    if places.store is None:
        return []
    try:
        return sorted(
            each for each in places.store.parent.iterdir() if each.name.startswith(places.store.name)
        )
    except OSError:
        return []


def _layers(
    places: BoxPlaces, settings: SandboxConfig, worktree: Path, home: str, *, keep: bool
) -> tuple[CacheLayer, ...]:
    given = _expanded(settings.caches, home) if settings.caches is not None else None
    found = _real(given if given is not None else [places.home / name for name in secrets.CACHES])
    layers = []
    for path in dict.fromkeys(found):
        if not os.path.isdir(path) or Path(path).is_relative_to(worktree):  # noqa: PTH112 - never raises
            continue
        kept = None
        if keep and places.caches is not None:
            key = hashlib.sha256(os.fsencode(f"{worktree}\0{path}")).hexdigest()[:32]
            kept = os.path.realpath(places.caches / key)
        layers.append(CacheLayer(path, kept))
    return tuple(layers)


def _expanded(texts: Iterable[str], home: str) -> list[Path]:
    """Paths of settings: absolute, or below `~`. Others name nothing that all who read them agree on."""
    paths = [f"{home}{text[1:]}" if text == "~" or text.startswith("~/") else text for text in texts]
    return [Path(path) for path in paths if path.startswith("/") and "\0" not in path]


def _real(paths: Iterable[Path]) -> list[str]:
    """The real paths of those that exist."""
    return [os.path.realpath(path) for path in paths if os.path.exists(path)]  # noqa: PTH110 - never raises


def _between(write: Iterable[str], hidden: Iterable[str]) -> list[str]:
    """The folders between what is writable and something hidden in it: under another name, the hidden would
    stand open to the next command.
    """
    return list(
        dict.fromkeys(
            str(above)
            for path in hidden
            for above in Path(path).parents
            if any(str(above) != folder and is_below(str(above), folder) for folder in write)
        )
    )


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(is_below(path, folder) for folder in folders)

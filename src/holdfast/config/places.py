"""Where settings lie: which folders are looked at, in which order.

`config.toml` is read in configuration folders only: in the top of a checkout that name belongs to others.
"""

import os
from pathlib import Path
from typing import Literal

import msgspec

from holdfast import flags

IN_PROJECT = ("opencode.json", "opencode.jsonc", "holdfast.json", "holdfast.jsonc")
IN_FOLDER = ("config.toml", *IN_PROJECT)
IN_GLOBAL = ("config.toml", "config.json", *IN_PROJECT)
"""Names in the order in which they are laid over one another: ours win."""

FOLDERS = (".opencode", ".holdfast")


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """What the user and the project have; `worktree` is the top of the checkout around `directory`.

    Without a checkout give the directory itself: folders above it do not count.
    """

    directory: Path
    worktree: Path
    home: Path
    opencode_config: Path
    holdfast_config: Path


class Folder(msgspec.Struct, frozen=True):
    """A folder to look at. `project` ones belong to the checkout, and are subject to trust."""

    path: Path
    names: tuple[str, ...]
    kind: Literal["files", "folder"]
    """`folder`: agents and commands may lie in it too."""
    project: bool
    top: Path | None = None
    """The top of the checkout, for a folder that may be that itself."""

    @property
    def trust_path(self) -> Path:
        """The directory that the user trusts when they trust this."""
        path = self.path.parent if self.kind == "folder" else self.path
        return path if self.top is None or path.is_relative_to(self.top) else self.top


def of_user(places: Places) -> list[Folder]:
    """OpenCode's settings of this user, then ours."""
    return [
        Folder(path, IN_GLOBAL, "folder", project=False)
        for path in (places.opencode_config, places.holdfast_config)
    ]


def of_project(places: Places) -> list[Folder]:
    """Settings files from the top of the checkout down to the directory, then folders in the same order."""
    way = downward(places.worktree, places.directory)
    return [
        *(Folder(folder, IN_PROJECT, "files", project=True) for folder in way),
        *(
            Folder(folder / name, IN_FOLDER, "folder", project=True)
            for folder in way
            for name in FOLDERS
            if os.path.isdir(folder / name)  # noqa: PTH112 - false, and no error, for what is not ours to see
        ),
    ]


def of_project_folder(folder: Path) -> list[Folder]:
    """The same of one folder on that way. Those that are not there count too: they may come."""
    return [
        Folder(folder, IN_PROJECT, "files", project=True),
        *(Folder(folder / name, IN_FOLDER, "folder", project=True) for name in FOLDERS),
    ]


def downward(worktree: Path, directory: Path) -> list[Path]:
    """Every folder from the top to the directory; only the directory where it is not below the top."""
    if not directory.is_relative_to(worktree):
        return [directory]
    below = directory.relative_to(worktree).parts
    return [worktree.joinpath(*below[:count]) for count in range(len(below) + 1)]


def belongs(named: str, places: Places) -> bool:
    """Whether a file that the environment names is the project's: the name is relative, and leads into the
    worktree, be it as it is written or through links.
    """
    return _belongs(named, places.directory, places.worktree)


def _belongs(named: str, directory: Path, worktree: Path) -> bool:
    relative = Path(named).expanduser()
    if relative.is_absolute():
        return False
    path = directory / relative
    return Path(os.path.normpath(path)).is_relative_to(worktree) or inside(path, worktree)


def named_of_user(directory: Path, worktree: Path) -> list[Path]:
    """The file and the folder of settings that the environment names and that are not the project's."""
    named = [found for flag in (flags.CONFIG_DIR, flags.CONFIG) if (found := flags.flag(flag))]
    return [directory / Path(each).expanduser() for each in named if not _belongs(each, directory, worktree)]


def of_environment(places: Places) -> list[Folder]:
    """Settings of the project that the environment names, as far as they exist."""
    found = []
    for flag, kind in ((flags.CONFIG_DIR, "folder"), (flags.CONFIG, "files")):
        named = flags.flag(flag)
        if named and belongs(named, places):
            path = places.directory / Path(named).expanduser()
            if kind == "folder" and path.is_dir():
                found.append(Folder(path, IN_FOLDER, "folder", project=True, top=places.worktree))
            elif kind == "files" and path.is_file():
                found.append(Folder(path.parent, (path.name,), "files", project=True, top=places.worktree))
    return found


def inside(path: Path, worktree: Path) -> bool:
    """Whether a file, links resolved, lies in the checkout."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(worktree))

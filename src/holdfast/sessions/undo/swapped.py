"""Files that became folders, and folders that became files: what stands in a file's way goes first.

A path counts as free when all that stands in its way is taken back by the same undo. What must stay true:
anything that the undo does not remove itself stays in the way, and the file is in conflict.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from holdfast.sessions.undo.plan import MISSING, Held, Planned

ENTRIES_MAX: Final = 20_000


def freed(files: Iterable[Planned], held: Mapping[str, Held]) -> dict[str, Held]:
    """What stands at each path once the undo has removed its files, where something was in the way."""
    files = list(files)
    blocked = [each.path for each in files if each.now.obstacle is not None]
    gone = {each.path for each in files if each.then.data is None and each.now.obstacle is None}
    free = {path: MISSING for path in blocked if _is_free(Path(path), gone)}
    return {**held, **free}


def _is_free(path: Path, gone: Collection[str]) -> bool:
    """Whether nothing but files that go stands there, or on the way."""
    try:
        if path.is_symlink():
            return False
        if path.is_dir():
            return _holds_only(path, gone)
        return any(str(above) in gone and above.is_file() for above in path.parents)
    except OSError:  # What cannot be looked at is in the way.
        return False


def _holds_only(folder: Path, gone: Collection[str]) -> bool:
    count = 0
    for at, folders, names in os.walk(folder, onerror=_raise):
        count += len(folders) + len(names)
        links = [name for name in folders if Path(at, name).is_symlink()]
        if links or count > ENTRIES_MAX or any(str(Path(at, name)) not in gone for name in names):
            return False
    return True


def _raise(error: OSError) -> None:
    raise error


def remove_folder(path: Path) -> None:
    """Remove a folder that holds nothing but folders, if it is one; one that holds anything else stays."""
    if path.is_symlink() or not path.is_dir():
        return
    for at, _, _ in os.walk(path, topdown=False):
        try:
            Path(at).rmdir()
        except OSError:  # Something is in it by now: the write finds it in the way.
            return

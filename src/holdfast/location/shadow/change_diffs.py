"""What an agent changed in files, as differences: from what each file held first to what it held last."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from holdfast.location.shadow.file_diffs import Difference, differences
from holdfast.location.shadow.objects import Entry
from holdfast.location.shadow.repository import Shadow
from holdfast.schema.file_change import FileChange

_FILE = 0o100644


def change_diffs(
    shadow: Shadow, changes: Iterable[FileChange], *, context: int, renames: bool = False, chars_max: int
) -> list[Difference]:
    """The differences, by path from the top of the worktree, absolute where a file lies outside of it.

    Changes that nothing was kept of are left out.
    """
    old: dict[str, Entry] = {}
    new: dict[str, Entry] = {}
    names: dict[str, str] = {}
    for each in changes:
        if not each.covered:
            continue
        name = name_of(each.path, shadow.worktree)
        inside = name.lstrip("/")  # The name in a tree, which has no root.
        if inside not in names and each.before is not None:
            old[inside] = (each.before_mode or each.after_mode or _FILE, each.before)
        names.setdefault(inside, name)
        new.pop(inside, None)
        if each.after is not None:
            new[inside] = (each.after_mode or each.before_mode or _FILE, each.after)
    trees = shadow.make_tree(old), shadow.make_tree(new)
    found = differences(shadow, *trees, context=context, renames=renames, chars_max=chars_max)
    return [
        msgspec.structs.replace(
            each,
            path=names[each.path],
            old_path=None if each.old_path is None else names[each.old_path],
        )
        for each in found
    ]


def name_of(path: str, top: Path) -> str:
    """A path as diffs name it: from the top of the worktree, absolute where it lies outside."""
    found = os.path.relpath(path, top)
    return path if found == ".." or found.startswith("../") else found

"""Reverts towards a tree that the caller names, instead of what the ledger says that files held."""

import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import NotFound
from holdfast.schema.file_change import FileChange
from holdfast.sessions.undo.contents import is_id
from holdfast.sessions.undo.plan import by_path
from holdfast.sessions.undo.worktree import Worktree

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The tree without any file, which git knows without an object for it."""


def towards(worktree: Worktree, changes: Sequence[FileChange], tree: str) -> list[FileChange]:
    """One change for each path that the agent changed, from what the tree holds to what the agent left."""
    shadow = worktree.shadow
    if not is_id(tree) or not shadow.holds(tree):
        raise NotFound(f"snapshot {tree[:60]} is not kept; `sessions.snapshots` names those that are")
    held = {os.fspath(Path(worktree.top, each.path)): each for each in shadow.changes(EMPTY, tree)}
    found = []
    for path, each in by_path(changes).items():
        first, last = held.get(path), each[-1]
        # What was there before the agent changed it, and is not in the tree, was ignored or too large for it.
        is_told = first is not None or each[0].before is None
        found.append(
            FileChange(
                path=path,
                before=None if first is None else first.new,
                after=last.after,
                # Of modes a tree knows only whether a file can be executed: for one that comes back.
                before_mode=None if first is None or last.after is not None else int(first.new_mode, 8),
                observed=any(change.observed for change in each),
                covered=is_told and last.covered,
            )
        )
    return found

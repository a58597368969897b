"""Puts a plan together from the ledger, the files and what is kept: reads, and writes nothing.

While a revert is staged, the plan starts from what `unrevert` would give, so that moving the point is the
same as undoing the revert and beginning again. Waits for the disk and for git: run it in a thread.
"""

import math
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from holdfast.errors import Refused
from holdfast.location.shadow.objects import content_id
from holdfast.person.private import make_folder
from holdfast.schema.file_change import FileChange
from holdfast.sessions.undo import contents, merge, plan, present, swapped
from holdfast.sessions.undo.contents import TooLarge
from holdfast.sessions.undo.plan import MISSING, Held, Merge, Planned
from holdfast.sessions.undo.worktree import Worktree


class Draft(msgspec.Struct, frozen=True):
    """What is to become of the files: `kept` says what `unrevert` would bring back, and from what."""

    files: tuple[Planned, ...]
    kept: tuple[FileChange, ...] = ()
    contents: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    """By id, whatever the lists name."""

    @property
    def conflicts(self) -> list[Planned]:
        """What stops the whole operation."""
        return [each for each in self.files if each.outcome == "conflict"]

    @property
    def written(self) -> list[Planned]:
        """The files that change."""
        return [each for each in self.files if each.is_written]


def draft(
    worktree: Worktree,
    changes: Sequence[FileChange],
    kept: Sequence[FileChange] = (),
    *,
    writes: Sequence[FileChange] = (),
    bytes_max: float = math.inf,
) -> Draft:
    """Undo the changes; `kept` is what the staged revert did, which counts as undone before. `writes` is what
    that one has left to write, for a preview: it counts as written. `Refused` if the files, or what is kept
    of them, hold more than `bytes_max`.
    """
    every = (*writes, *kept, *changes)
    paths = dict.fromkeys(each.path for each in every)
    closed = worktree.closed(paths)
    try:
        held = _held([path for path in paths if path not in closed], bytes_max)
        known = contents.contents(worktree.shadow, _ids(every, held), room=bytes_max)
    except TooLarge:
        raise Refused(
            f"the files hold more than {bytes_max / (1 << 20):.0f} MiB together, too much to compare at "
            "once; take back less: name a later message, or a part of one"
        ) from None
    make_folder(worktree.shadow.git_dir)
    _clear(worktree.shadow.git_dir)
    with merge.merger(worktree.shadow.git_dir) as merged:
        made = partial(_planned, known=known, merged=merged, closed=closed)
        held |= {each.path: each.then for each in made(writes, held)}
        first = made(kept, held)
        before = held | {each.path: each.then for each in first}
        then = {each.path: each for each in made(changes, before)}
    files = [_joined(each, then.pop(each.path, None)) for each in first]
    return _draft([*files, *then.values()], before)


def _held(paths: Iterable[str], room: float) -> dict[str, Held]:
    found: dict[str, Held] = {}
    for path in paths:
        found[path] = present.held(Path(path))
        room -= len(found[path].data or b"")
        if room < 0:
            raise TooLarge
    return found


def _planned(
    changes: Sequence[FileChange],
    held: Mapping[str, Held],
    *,
    known: Mapping[str, bytes],
    merged: Merge,
    closed: Mapping[str, str],
) -> list[Planned]:
    """A plan; once more if it removes what stands in the way of some of its files."""
    files = plan.plan(changes, held, known.get, merged, closed=closed)
    free = swapped.freed(files, held)
    return files if free == held else plan.plan(changes, free, known.get, merged, closed=closed)


def writes_of(files: Iterable[Planned]) -> list[FileChange]:
    """Writes as changes to be undone, from what a file holds to what it becomes: how they are finished."""
    return [change(each.path, before=each.then, after=each.now) for each in files]


def change(path: str, *, before: Held, after: Held) -> FileChange:
    """A change from one state of a file to another."""
    return FileChange(
        path=path,
        before=None if before.data is None else content_id(before.data),
        after=None if after.data is None else content_id(after.data),
        before_mode=before.mode,
        after_mode=after.mode,
    )


def _ids(changes: Sequence[FileChange], held: Mapping[str, Held]) -> list[str]:
    """The contents that may be needed: what an agent left is, unless the file holds it, or is gone, and there
    is no earlier change of it.
    """
    found: list[str] = []
    count = Counter(each.path for each in changes)
    for each in changes:
        found += [] if each.before is None else [each.before]
        data = held.get(each.path, MISSING).data
        is_left = data is None or content_id(data) == each.after
        if each.after is not None and (count[each.path] > 1 or not is_left):
            found.append(each.after)
    return found


def _joined(first: Planned, second: Planned | None) -> Planned:
    """What becomes of a file of the staged revert: from what it holds now to what the new point asks for."""
    if second is None or first.outcome == "conflict":
        return first
    if second.outcome in ("conflict", "not covered"):
        return msgspec.structs.replace(second, now=first.now, then=first.then)
    made = msgspec.structs.replace(second, now=first.now)
    if not made.is_written:
        return msgspec.structs.replace(made, outcome="unchanged")
    if second.outcome == "unchanged":
        return msgspec.structs.replace(made, outcome=first.outcome)
    return made


def _draft(files: Sequence[Planned], before: Mapping[str, Held]) -> Draft:
    kept: list[FileChange] = []
    known: dict[str, bytes] = {}
    for each in files:
        was = before.get(each.path, MISSING)
        is_kept = (was.data, was.mode) != (each.then.data, each.then.mode)
        if is_kept:
            kept.append(change(each.path, before=was, after=each.then))
        for state in (was, each.now, each.then) if is_kept or each.is_written else ():
            if state.data is not None:
                known[content_id(state.data)] = state.data
    return Draft(tuple(files), tuple(kept), known)


def _clear(folder: Path) -> None:
    """Remove what a killed process left. The caller holds the lock."""
    for left in folder.glob(f"{merge.FOLDER}*"):
        shutil.rmtree(left, ignore_errors=True)

"""What undoing changes would make of each file, from what it holds now. Pure.

What must stay true: only what the agent wrote is taken back. A file that holds exactly what the agent left
becomes what it was before; one that holds something else is merged line by line; where that cannot be done
without dropping a line of the user's, the file is in conflict and nothing is planned for it.
"""

import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.location.shadow.objects import content_id
from holdfast.runtime.history import file_changes
from holdfast.schema.file_change import FileChange

Outcome = Literal["restored", "merged", "deleted", "unchanged", "conflict", "not covered"]

Regions = tuple[tuple[int, int], ...]
"""First and last lines, counted from 1."""


class Held(msgspec.Struct, frozen=True):
    """What stands at a path: a file, or nothing (no data). `obstacle`: something that cannot be compared."""

    data: bytes | None = None
    mode: int | None = None
    obstacle: str | None = None


class Merged(msgspec.Struct, frozen=True):
    """The merged content, or why there is none and which lines of the user's file are in the way."""

    data: bytes | None = None
    reason: str | None = None
    lines: Regions = ()


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one file; `then` is `now` where nothing is written."""

    path: str
    outcome: Outcome
    now: Held
    then: Held
    reason: str | None = None
    lines: Regions = ()
    observed: bool = False

    @property
    def is_written(self) -> bool:
        """Whether the file changes."""
        return (self.now.data, self.now.mode) != (self.then.data, self.then.mode)


Content = Callable[[str], bytes | None]
"""A kept content by its id; None where it is no longer kept."""
Merge = Callable[[bytes, bytes, bytes], Merged]
"""Of base, the user's file, and the other side."""

MISSING: Final = Held()
_EXECUTABLE: Final = 0o111


def plan(
    changes: Iterable[FileChange],
    held: Mapping[str, Held],
    content: Content,
    merge: Merge,
    *,
    closed: Mapping[str, str] | None = None,
) -> list[Planned]:
    """Undo the changes, given the oldest first. `closed`: paths that are never touched, and why."""
    found = []
    for path, each in by_path(changes).items():
        now = held.get(path, MISSING)
        observed = any(change.observed for change in each)
        why = (closed or {}).get(path) or _uncovered(each, content)
        if why is not None:
            outcome: Planned = Planned(path=path, outcome="not covered", now=now, then=now, reason=why)
        elif now.obstacle is not None:
            outcome = Planned(path=path, outcome="conflict", now=now, then=now, reason=now.obstacle)
        else:
            outcome = _undone(path, each, now, content, merge)
        found.append(msgspec.structs.replace(outcome, observed=observed))
    return found


def by_path(changes: Iterable[FileChange]) -> dict[str, list[FileChange]]:
    """The changes of each file, joined where they follow each other."""
    found: dict[str, list[FileChange]] = {}
    for change in file_changes.joined(changes):
        found.setdefault(change.path, []).append(change)
    return found


def _uncovered(changes: Sequence[FileChange], content: Content) -> str | None:
    """Why a file cannot be put back, if so."""
    if not all(change.covered for change in changes):
        return "what it held before could not be kept"
    modes = [mode for each in changes for mode in (each.before_mode, each.after_mode) if mode]
    if any(stat.S_ISLNK(mode) for mode in modes):
        return "it is, or was, a link, which is never written"
    if any(change.before is not None and content(change.before) is None for change in changes):
        return "what it held before is no longer kept"
    return None


def _undone(path: str, changes: Sequence[FileChange], now: Held, content: Content, merge: Merge) -> Planned:
    """Undo the changes of one file, the last first."""
    state, merged, reason = now, False, None
    for change in reversed(changes):
        before = None if change.before is None else content(change.before)
        held = None if state.data is None else content_id(state.data)
        if held is None and change.before is not None and change.after is not None:
            reason = "it was deleted since, and stays so"
        elif held == change.after:
            state = MISSING if before is None else Held(before, _mode(state.mode, change))
        elif held == change.before:
            state = MISSING if held is None else Held(state.data, _mode(state.mode, change))
        elif change.before is None:
            return _conflict(path, now, Merged(reason="the agent made it, and it has been changed since"))
        elif change.after is None:
            return _conflict(
                path, now, Merged(reason="the agent deleted it, and it has been made anew since")
            )
        else:
            assert before is not None, "it is covered"
            assert state.data is not None, "or it would be missing"
            base = content(change.after)
            if base is None:
                why = "it has been changed since, and what the agent left is no longer kept"
                return Planned(path=path, outcome="not covered", now=now, then=now, reason=why)
            made = merge(base, state.data, before)
            if made.data is None:
                return _conflict(path, now, made)
            state, merged = Held(made.data, _mode(state.mode, change)), True
    return Planned(path=path, outcome=_outcome(now, state, merged=merged), now=now, then=state, reason=reason)


def _outcome(now: Held, then: Held, *, merged: bool) -> Outcome:
    if (now.data, now.mode) == (then.data, then.mode):
        return "unchanged"
    if then.data is None:
        return "deleted"
    return "merged" if merged else "restored"


def _conflict(path: str, now: Held, why: Merged) -> Planned:
    return Planned(path=path, outcome="conflict", now=now, then=now, reason=why.reason, lines=why.lines)


def _mode(now: int | None, change: FileChange) -> int | None:
    """The mode after the undo: the one before, unless the agent left it as it was, or the user changed it.

    Of what was observed git knows only whether it can be executed.
    """
    before, after = change.before_mode, change.after_mode
    if before is None:
        return now
    if now is None or after is None:
        return now if now is not None else stat.S_IMODE(before)
    if not change.observed:
        return stat.S_IMODE(before) if now == stat.S_IMODE(after) else now
    was, became = bool(before & _EXECUTABLE), bool(after & _EXECUTABLE)
    if was == became or bool(now & _EXECUTABLE) != became:
        return now
    # Whoever may read it may execute it, as git does it.
    return now | (now >> 2 & _EXECUTABLE) if was else now & ~_EXECUTABLE

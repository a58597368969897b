"""What a caller is told of an undo, done or previewed: file by file, each with its diff."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.errors import UndoConflict
from holdfast.schema.session import RevertFile, Session
from holdfast.schema.session_lists import DiffStatus
from holdfast.sessions.undo.plan import Held, Outcome, Planned, Regions
from holdfast.sessions.undo.worktree import Worktree
from holdfast.text import one_line
from holdfast.tools.builtin import file_diff

TEXT_BYTES_MAX: Final = 2 << 20
RECORD_CHARS_MAX: Final = 20_000
RECORD_FILES_MAX: Final = 500
"""How much of all files and diffs the session's record holds: lists read it."""
NAMED_MAX: Final = 5
MESSAGE_MAX: Final = 1_000


class UndoneFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file, by its path from the top of the worktree. `lines`: those that are in the way."""

    path: str
    outcome: Outcome
    reason: str | None = None
    lines: Regions = ()
    observed: bool = False
    status: DiffStatus | None = None
    additions: int = 0
    deletions: int = 0
    patch: str = ""


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """The session, its files, and what could not be known. `done` is False for a preview."""

    session: Session
    files: tuple[UndoneFile, ...] = ()
    notes: tuple[str, ...] = ()
    done: bool = True

    @property
    def conflicts(self) -> list[UndoneFile]:
        """The files that would stop it; of a preview."""
        return [each for each in self.files if each.outcome == "conflict"]


def undone(worktree: Worktree, files: Iterable[Planned]) -> tuple[UndoneFile, ...]:
    """The files of a plan, sorted by path."""
    found = [_file(worktree.shown(each.path), each) for each in files]
    return tuple(sorted(found, key=lambda each: each.path))


def _file(path: str, planned: Planned) -> UndoneFile:
    made = UndoneFile(
        path=path,
        outcome=planned.outcome,
        reason=planned.reason,
        lines=planned.lines,
        observed=planned.observed,
    )
    if not planned.is_written:
        return made
    now, then = _text(planned.now), _text(planned.then)
    status: DiffStatus = "modified"
    if planned.now.data is None or planned.then.data is None:
        status = "added" if planned.now.data is None else "deleted"
    if now is None or then is None:
        return msgspec.structs.replace(made, status=status)
    shown = file_diff.diff(path, now, then)
    return msgspec.structs.replace(
        made, status=status, additions=shown.additions, deletions=shown.deletions, patch=shown.patch
    )


def _text(held: Held) -> str | None:
    """The content as text; None for what is binary or long."""
    data = held.data or b""
    if len(data) > TEXT_BYTES_MAX or b"\0" in data:
        return None
    return data.decode("utf-8", "replace")


def recorded(files: Sequence[UndoneFile]) -> tuple[list[RevertFile], str]:
    """The files that changed as the session's record has them, and one diff of all; both bounded."""
    room = RECORD_CHARS_MAX
    found: list[RevertFile] = []
    for each in files:
        if each.status is None or len(found) == RECORD_FILES_MAX:
            continue
        patch = each.patch if len(each.patch) <= room else ""
        room -= len(patch)
        found.append(
            RevertFile(
                path=each.path,
                status=each.status,
                additions=each.additions,
                deletions=each.deletions,
                patch=patch,
            )
        )
    return found, "\n".join(each.patch for each in found if each.patch)


def conflict(worktree: Worktree, files: Sequence[Planned]) -> UndoConflict:
    """The error that names what is in the way."""
    found = tuple((worktree.shown(each.path), each.reason or "", each.lines) for each in files)
    named = [f"{path}{_lines(lines)}: {reason}" for path, reason, lines in found[:NAMED_MAX]]
    more = f"; and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    said = f"nothing was changed: {'; '.join(named)}{more}"
    return UndoConflict(one_line(said, MESSAGE_MAX), found)


def _lines(regions: Regions) -> str:
    if not regions:
        return ""
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in regions)
    return f" line {shown}" if len(regions) == 1 and regions[0][0] == regions[0][1] else f" lines {shown}"

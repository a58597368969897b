"""Reverts a session to a point: its files at once, its messages with the next prompt."""

from collections.abc import Sequence
from typing import Final

import anyio.to_thread

from holdfast.errors import InvalidInput, Refused
from holdfast.schema.file_change import FileChange
from holdfast.schema.message import MessageWithParts
from holdfast.schema.session import Revert
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.undo import kept_state, ledger, result, target_tree
from holdfast.sessions.undo import point as pointing
from holdfast.sessions.undo.draft import Draft, draft
from holdfast.sessions.undo.ledger import Ledger
from holdfast.sessions.undo.point import Point
from holdfast.sessions.undo.resting import patient, require_resting
from holdfast.sessions.undo.result import Undo
from holdfast.sessions.undo.stage import finish, release_committed, stage, unwritten
from holdfast.sessions.undo.worktree import Worktree, worktree_of
from holdfast.store.on_conflict import on_conflict

TRIES = 5
BYTES_MAX: Final = 1 << 30
"""All of it is in memory: what the files hold, and as much again of what they held."""


async def revert(
    access: StoreAccess,
    session: str,
    message: str | None = None,
    *,
    part: str | None = None,
    snapshot: str | None = None,
    preview: bool = False,
) -> Undo:
    """Take back everything from a message on, else from the last prompt on; `preview` changes nothing.

    Raises `UndoConflict` where the user has changed the same lines since.
    """
    if part is not None and message is None:
        raise InvalidInput("a part is named together with its message")
    access = patient(access)
    record, below = await require_resting(access, session)
    worktree = await worktree_of(access, record.value())
    first = record.value().revert
    # A call that was cut off, and is made again, has its point.
    again = first is not None and first.writes is not None and not first.leaving

    async def once() -> Undo:
        record, _ = await require_resting(access, session)
        if not preview:
            record = await finish(access, worktree, record)
        history = await ledger.whole_history(access, session)
        before = cut_off = record.value().revert
        if before is not None and before.leaving:  # Of a preview: once it is finished, none is staged.
            before = None
        if message is None and first is not None and again:
            at = Point(first.message_id, first.part_id)
        elif message is None:
            shown = history if before is None else _until(history, before)
            at = Point(pointing.last_prompt(shown))
        else:
            at = pointing.point(history, message, part)
        found = await ledger.ledger(access, record.value(), history, below, at)
        made = await anyio.to_thread.run_sync(lambda: _drafted(worktree, found, before, cut_off, snapshot))
        files = await anyio.to_thread.run_sync(lambda: result.undone(worktree, made.files))
        if preview:
            return Undo(session=record.value(), files=files, notes=found.notes, done=False)
        if made.conflicts:
            raise result.conflict(worktree, made.conflicts)
        named, diff = result.recorded(files)
        new = Revert(
            message_id=at.message,
            part_id=at.part,
            snapshot=snapshot,
            diff=diff or None,
            files=named or None,
        )
        staged = await stage(access, worktree, record, made, new, kept=made.kept)
        return Undo(session=staged, files=files, notes=found.notes)

    async with worktree.locked():
        await release_committed(access, worktree)
        return await on_conflict(once, tries=TRIES)


def _until(history: Sequence[MessageWithParts], staged: Revert) -> list[MessageWithParts]:
    """What a staged revert shows."""
    ids = [each.info.id for each in history]
    return list(history[: ids.index(staged.message_id)]) if staged.message_id in ids else list(history)


def _drafted(
    worktree: Worktree, found: Ledger, staged: Revert | None, cut_off: Revert | None, snapshot: str | None
) -> Draft:
    changes: Sequence[FileChange] = found.changes
    if snapshot is not None:
        changes = target_tree.towards(worktree, changes, snapshot)
    kept = kept_state.changes(worktree.shadow, None if staged is None else staged.kept)
    if kept is None:
        raise Refused("what the staged revert replaced is no longer kept, so that its point cannot be moved")
    writes = unwritten(worktree, cut_off)
    return draft(worktree, changes, kept, writes=writes, bytes_max=BYTES_MAX)

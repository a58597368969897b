"""Undoes a revert: a staged one with its messages, the last committed one for its files alone."""

import anyio.to_thread
from msgspec.structs import replace

from holdfast.errors import NotFound, Refused
from holdfast.location.shadow import place
from holdfast.runtime.undo.commit import KEPT_MS
from holdfast.schema.file_change import FileChange
from holdfast.schema.session import CommittedRevert, Revert, Session
from holdfast.sessions.access import StoreAccess, put_session, require_session
from holdfast.sessions.undo import kept_state, result, write_files
from holdfast.sessions.undo.draft import Draft, draft
from holdfast.sessions.undo.resting import expected, patient, require_resting
from holdfast.sessions.undo.result import Undo
from holdfast.sessions.undo.revert import TRIES
from holdfast.sessions.undo.stage import finish, release_committed, stage, unwritten
from holdfast.sessions.undo.worktree import Worktree, worktree_of
from holdfast.sessions.undo.write_files import NotWritten
from holdfast.store.batch import Batch
from holdfast.store.on_conflict import on_conflict
from holdfast.store.record import SessionRecord

GONE = "what the files held before is no longer kept; they stay as they are"


async def unrevert(
    access: StoreAccess, session: str, *, committed: bool = False, preview: bool = False
) -> Undo:
    """Undo a staged revert: files and messages come back. `committed`: the files of the last one that was
    committed; its messages stay gone.

    Raises `UndoConflict` where the user has changed the same lines since.
    """
    access = patient(access)
    record, _ = await require_resting(access, session)
    worktree = await worktree_of(access, record.value())
    undo = _undo_committed if committed else _undo_staged

    async def once() -> Undo:
        record, _ = await require_resting(access, session)
        return await undo(access, worktree, record, preview=preview)

    async with worktree.locked():
        await release_committed(access, worktree)
        return await on_conflict(once, tries=TRIES)


async def finish_cut_off(access: StoreAccess, session: str) -> None:
    """Finish a revert, or its undo, that a process left in the middle."""
    access = patient(access)
    worktree = await worktree_of(access, (await require_session(access, session)).value())
    async with worktree.locked():
        await finish(access, worktree, await require_session(access, session))


async def _undo_staged(
    access: StoreAccess, worktree: Worktree, record: SessionRecord, *, preview: bool
) -> Undo:
    if not preview:
        record = await finish(access, worktree, record)
    value = record.value()
    if value.revert is None:
        return Undo(session=value, done=not preview)
    kept, made = await _drafted(worktree, value.revert.kept, value.revert)
    files = await anyio.to_thread.run_sync(lambda: result.undone(worktree, made.files))
    notes = () if kept is not None else (GONE,)
    if preview:
        return Undo(session=value, files=files, notes=notes, done=False)
    if made.conflicts:
        raise result.conflict(worktree, made.conflicts)
    leaving = replace(value.revert, leaving=True)
    left = await stage(access, worktree, record, made, leaving, kept=kept or ())
    if kept is None or any(each.outcome == "not covered" for each in files):
        # What did not come back now may be found by hand: it is kept within the budget.
        await anyio.to_thread.run_sync(kept_state.release, worktree.shadow, record.id)
    else:
        await anyio.to_thread.run_sync(worktree.shadow.drop, place.staged_of(record.id))
    return Undo(session=left, files=files, notes=notes)


async def _undo_committed(
    access: StoreAccess, worktree: Worktree, record: SessionRecord, *, preview: bool
) -> Undo:
    """Each file by itself: if this is cut off, the next call goes on with those that are left."""
    value = record.value()
    if value.revert is not None:
        raise Refused(f"session {value.id} has a staged revert; undo that one first")
    last = _last(value, access.clock.now_ms())
    kept, made = await _drafted(worktree, last.kept)
    if kept is None:
        raise NotFound(f"what the last revert of session {value.id} replaced is no longer kept")
    files = await anyio.to_thread.run_sync(lambda: result.undone(worktree, made.files))
    if preview:
        return Undo(session=value, files=files, done=False)
    if made.conflicts:
        raise result.conflict(worktree, made.conflicts)

    def write() -> None:
        kept_state.keep_contents(worktree.shadow, place.folder_of(value.id), list(made.contents.values()))
        write_files.write_all(made.written)

    try:
        await anyio.to_thread.run_sync(write)
    except NotWritten as error:
        raise error.cause from error

    async def forget() -> Session:
        """Whatever else changed in the session meanwhile: the files are written."""
        record = await require_session(access, value.id)
        left = [each for each in record.value().reverted or () if each != last]
        after = replace(record.value(), reverted=left or None)
        await access.store.commit(Batch((put_session(after),), expected(record)))
        return after

    return Undo(session=await on_conflict(forget), files=files)


def _last(session: Session, now_ms: int) -> CommittedRevert:
    """The last committed revert whose files are still kept."""
    found = [each for each in session.reverted or () if each.time.created > now_ms - KEPT_MS]
    if not found:
        days = KEPT_MS // 86_400_000
        raise NotFound(f"no revert of session {session.id} was committed within the last {days} days")
    return found[-1]


async def _drafted(
    worktree: Worktree, id: str | None, cut_off: Revert | None = None
) -> tuple[list[FileChange] | None, Draft]:
    """What a revert did, and the draft that undoes it; of a preview, over what is left to write of it."""

    def read() -> tuple[list[FileChange] | None, Draft]:
        kept = kept_state.changes(worktree.shadow, id)
        return kept, draft(worktree, kept or (), writes=unwritten(worktree, cut_off))

    return await anyio.to_thread.run_sync(read)

"""Writes the files of a plan, with a record of it on both sides, so that a crash in between is finished.

In this order: what is replaced and what is written is kept; the session says what is staged and that it is
not written yet; the files are written, each against what it held; the session says that they are. What must
stay true: a file holds what it held, or what it becomes, and both are kept.
"""

from collections.abc import Sequence

import anyio.to_thread
from msgspec.structs import replace

from holdfast.errors import NotFound
from holdfast.location.shadow import place
from holdfast.schema.file_change import FileChange
from holdfast.schema.session import Revert, Session
from holdfast.sessions.access import StoreAccess, put_session, require_session
from holdfast.sessions.undo import kept_state, write_files
from holdfast.sessions.undo.draft import Draft, draft
from holdfast.sessions.undo.resting import expected
from holdfast.sessions.undo.worktree import Worktree
from holdfast.sessions.undo.write_files import NotWritten
from holdfast.store.batch import Batch
from holdfast.store.on_conflict import on_conflict
from holdfast.store.record import SessionRecord


async def stage(
    access: StoreAccess,
    worktree: Worktree,
    record: SessionRecord,
    made: Draft,
    revert: Revert,
    *,
    kept: Sequence[FileChange],
) -> Session:
    """Carry out a draft under a revert whose lists are `kept` and the draft's own writes.

    If a file cannot be written, or holds something else by now, the others are put back, and the session is
    as it was.
    """
    before = record.value()
    shadow = worktree.shadow
    ids = await anyio.to_thread.run_sync(lambda: kept_state.keep(shadow, record.id, made, kept))
    revert = replace(revert, kept=ids.changes, writes=ids.writes)
    if revert.writes is None:
        return await _save(access, record, None if revert.leaving else revert)
    await _save(access, record, revert)
    try:
        await anyio.to_thread.run_sync(write_files.write_all, made.written)
    except NotWritten as error:
        if error.restored:
            await _settle(access, record.id, before.revert)
        raise error.cause from error
    return await _settle(access, record.id, None if revert.leaving else replace(revert, writes=None))


def unwritten(worktree: Worktree, revert: Revert | None) -> list[FileChange]:
    """What a revert, or its undo, has left to write when it was cut off."""
    return kept_state.changes(worktree.shadow, None if revert is None else revert.writes) or []


async def finish(access: StoreAccess, worktree: Worktree, record: SessionRecord) -> SessionRecord:
    """Write what a revert, or its undo, has left to write when it was cut off. The caller holds the lock."""
    revert = record.value().revert
    if revert is None or revert.writes is None:
        return record
    writes, shadow = revert.writes, worktree.shadow

    def write() -> None:
        found = kept_state.changes(shadow, writes)
        if found is None:
            raise NotFound(f"what a revert of session {record.id} had left to write is no longer kept")
        made = draft(worktree, found)  # What the user has changed since in the same lines is not written.
        kept_state.keep_contents(shadow, place.staged_of(record.id), list(made.contents.values()))
        write_files.write_all(made.written)

    try:
        await anyio.to_thread.run_sync(write)
    except NotWritten as error:
        raise error.cause from error
    except NotFound:
        pass  # Each file holds one or the other; there is nothing left to finish it from.
    await _settle(access, record.id, None if revert.leaving else replace(revert, writes=None))
    return await require_session(access, record.id)


async def _settle(access: StoreAccess, session: str, revert: Revert | None) -> Session:
    """Note that the files are written, or put back, whatever else changed in the session meanwhile."""

    async def once() -> Session:
        return await _save(access, await require_session(access, session), revert)

    return await on_conflict(once)


async def _save(access: StoreAccess, record: SessionRecord, revert: Revert | None) -> Session:
    session = record.value()
    time = replace(session.time, updated=max(access.clock.now_ms(), session.time.updated))
    session = replace(session, revert=revert, time=time)
    await access.store.commit(Batch((put_session(session),), expected(record)))
    return session


async def release_committed(access: StoreAccess, worktree: Worktree) -> None:
    """What committed reverts keep counts from now on like everything else of their sessions."""
    for session in await anyio.to_thread.run_sync(kept_state.staged, worktree.shadow):
        record = await access.store.session(session)
        if record is None or record.value().revert is None:
            await anyio.to_thread.run_sync(kept_state.release, worktree.shadow, session)

"""Changes a session's own record: one atomic read-modify-write, and the calls that are made of it."""

from collections.abc import Callable

from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.schema.budget import Budget
from holdfast.schema.ids import ProjectID
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.sessions.access import StoreAccess, put_session, require_idle, require_session
from holdfast.sessions.create import checked_title, locate_directory, project_changes
from holdfast.store.batch import Batch, Change, Expectation, Put, Unchanged, Unclaimed
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put

SessionEditor = Callable[[Session], Session]


async def update(access: StoreAccess, session: str, editor: SessionEditor) -> Session:
    """Replace the session with the value that the editor returns.

    The editor is called again if another writer changed the session meanwhile. It cannot change the session's
    id or parent.
    """

    async def once() -> Session:
        record = await require_session(access, session)
        before = record.value()
        after = editor(before)
        if (after.id, after.parent_id) != (before.id, before.parent_id):
            raise InvalidInput(f"session {session} cannot change its id or its parent")
        if after != before:
            changes: list[Change] = [put_session(after)]
            expect: list[Expectation] = [Unchanged(session, "session", session, record.seq)]
            if after.directory != before.directory:
                left, same = await _note_move(access, session)
                changes, expect = [*changes, *left], [*expect, *same]
            await access.store.commit(Batch(tuple(changes), tuple(expect)))
        return after

    return await on_conflict(once)


async def set_budget(access: StoreAccess, session: str, budget: Budget | None) -> Session:
    """What the tree below a root session may spend; None lifts every limit."""

    def edit(value: Session) -> Session:
        if value.parent_id is not None:
            raise InvalidInput(f"session {session} is a child: its budget is that of the root of its tree")
        return replace(value, budget=budget)

    return await update(access, session, edit)


async def touch(access: StoreAccess, session: str) -> Session:
    """Move the session to the top of lists."""
    now_ms = access.clock.now_ms()
    return await update(access, session, lambda old: replace(old, time=replace(old.time, updated=now_ms)))


async def rename(access: StoreAccess, session: str, title: str) -> Session:
    """Give it another title. This is not activity: `time.updated` stays."""
    text = checked_title(title)
    return await update(access, session, lambda old: replace(old, title=text))


async def archive(access: StoreAccess, session: str) -> Session:
    """Hide it from ordinary lists."""
    now_ms = access.clock.now_ms()
    return await update(access, session, lambda old: replace(old, time=replace(old.time, archived=now_ms)))


async def restore(access: StoreAccess, session: str) -> Session:
    """Show it in lists again. One that was made for a run of an agent is an ordinary session from then on."""
    return await update(
        access, session, lambda old: replace(old, time=replace(old.time, archived=None), agent_run=None)
    )


async def move(access: StoreAccess, session: str, directory: str) -> Session:
    """Let the session work in another directory of this machine. Refused while it runs."""
    here = await locate_directory(access, directory)

    async def once() -> Session:
        record = await require_idle(access, session)
        before = record.value()
        if before.directory == here.directory:
            return before
        after = replace(
            before,
            directory=here.directory,
            path=here.path,
            project_id=ProjectID(here.project),
            placement=access.host.id,
            time=replace(before.time, updated=access.clock.now_ms()),
        )
        changes, expect = await project_changes(access, here)
        left, same = await _note_move(access, session)
        unchanged = Unchanged(session, "session", session, record.seq)
        await access.store.commit(
            Batch((*changes, put_session(after), *left), (*expect, *same, unchanged, Unclaimed(session)))
        )
        return after

    return await on_conflict(once)


async def _note_move(access: StoreAccess, session: str) -> tuple[list[Put], list[Unchanged]]:
    """Record in the epoch that the session has moved: the next boundary begins another epoch."""
    open_ = await access.store.select("epoch", session=session, mark=Mark.OPEN)
    epochs = [replace(record.value(), left=True) for record in open_]
    return [put(epoch) for epoch in epochs], [
        Unchanged(session, "epoch", record.id, record.seq) for record in open_
    ]

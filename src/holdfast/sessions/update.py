"""Changes a session's own record: one atomic read-modify-write, and the verbs made of it."""

from collections.abc import Callable

from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.schema.budget import Budget
from holdfast.schema.ids import ProjectID
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.sessions.access import StoreAccess, found, idle, put_session
from holdfast.sessions.create import checked_title, known_project, locate_
from holdfast.store.batch import Batch, Change, Expectation, Put, Unchanged, Unclaimed
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put

SessionEditor = Callable[[Session], Session]


async def update(access: StoreAccess, session: str, editor: SessionEditor) -> Session:
    """Replace the session by what the editor makes of it; nothing written in between is lost.

    The editor may be called more than once. It cannot change who the session is.
    """

    async def once() -> Session:
        record = await found(access, session)
        before = record.value()
        after = editor(before)
        if (after.id, after.parent_id) != (before.id, before.parent_id):
            raise InvalidInput(f"session {session} cannot change its id or its parent")
        if after != before:
            changes: list[Change] = [put_session(after)]
            expect: list[Expectation] = [Unchanged(session, "session", session, record.seq)]
            if after.directory != before.directory:
                left, same = await _left(access, session)
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
    here = await locate_(access, directory)

    async def once() -> Session:
        record = await idle(access, session)
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
        changes, expect = await known_project(access, here)
        left, same = await _left(access, session)
        unchanged = Unchanged(session, "session", session, record.seq)
        await access.store.commit(
            Batch((*changes, put_session(after), *left), (*expect, *same, unchanged, Unclaimed(session)))
        )
        return after

    return await on_conflict(once)


async def _left(access: StoreAccess, session: str) -> tuple[list[Put], list[Unchanged]]:
    """Note in the epoch that the session has left its place: that ends it, wherever the session goes on."""
    open_ = await access.store.select("epoch", session=session, mark=Mark.OPEN)
    epochs = [replace(record.value(), left=True) for record in open_]
    return [put(epoch) for epoch in epochs], [
        Unchanged(session, "epoch", record.id, record.seq) for record in open_
    ]

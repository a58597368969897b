"""Changes a session's own record: one atomic read-modify-write, and the verbs made of it."""

from collections.abc import Callable

from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.schema import stored
from holdfast.schema.budget import Budget
from holdfast.schema.ids import ProjectID
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.sessions.creating import checked_title, known_project, locate_
from holdfast.sessions.room import StoreAccess, again, found, idle, put_session
from holdfast.store.batch import Batch, Change, Expectation, Put, Unchanged, Unclaimed

Editor = Callable[[Session], Session]


async def update(room: StoreAccess, session: str, editor: Editor) -> Session:
    """Replace the session by what the editor makes of it; nothing written in between is lost.

    The editor may be called more than once. It cannot change who the session is.
    """

    async def once() -> Session:
        record = await found(room, session)
        before = record.value()
        after = editor(before)
        if (after.id, after.parent_id) != (before.id, before.parent_id):
            raise InvalidInput(f"session {session} cannot change its id or its parent")
        if after != before:
            changes: list[Change] = [put_session(after)]
            expect: list[Expectation] = [Unchanged(session, "session", session, record.seq)]
            if after.directory != before.directory:
                left, same = await _left(room, session)
                changes, expect = [*changes, *left], [*expect, *same]
            await room.store.commit(Batch(tuple(changes), tuple(expect)))
        return after

    return await again(once)


async def set_budget(room: StoreAccess, session: str, budget: Budget | None) -> Session:
    """What the tree below a root session may spend; None lifts every limit."""

    def edit(value: Session) -> Session:
        if value.parent_id is not None:
            raise InvalidInput(f"session {session} is a child: its budget is that of the root of its tree")
        return replace(value, budget=budget)

    return await update(room, session, edit)


async def touch(room: StoreAccess, session: str) -> Session:
    """Move the session to the top of lists."""
    now_ms = room.clock.now_ms()
    return await update(room, session, lambda old: replace(old, time=replace(old.time, updated=now_ms)))


async def rename(room: StoreAccess, session: str, title: str) -> Session:
    """Give it another title. This is not activity: `time.updated` stays."""
    text = checked_title(title)
    return await update(room, session, lambda old: replace(old, title=text))


async def archive(room: StoreAccess, session: str) -> Session:
    """Hide it from ordinary lists."""
    now_ms = room.clock.now_ms()
    return await update(room, session, lambda old: replace(old, time=replace(old.time, archived=now_ms)))


async def restore(room: StoreAccess, session: str) -> Session:
    """Show it in lists again. One that was made for a run of an agent is an ordinary session from then on."""
    return await update(
        room, session, lambda old: replace(old, time=replace(old.time, archived=None), agent_run=None)
    )


async def move(room: StoreAccess, session: str, directory: str) -> Session:
    """Let the session work in another directory of this machine. Refused while it runs."""
    here = await locate_(room, directory)

    async def once() -> Session:
        record = await idle(room, session)
        before = record.value()
        if before.directory == here.directory:
            return before
        after = replace(
            before,
            directory=here.directory,
            path=here.path,
            project_id=ProjectID(here.project),
            placement=room.host.id,
            time=replace(before.time, updated=room.clock.now_ms()),
        )
        changes, expect = await known_project(room, here)
        left, same = await _left(room, session)
        unchanged = Unchanged(session, "session", session, record.seq)
        await room.store.commit(
            Batch((*changes, put_session(after), *left), (*expect, *same, unchanged, Unclaimed(session)))
        )
        return after

    return await again(once)


async def _left(room: StoreAccess, session: str) -> tuple[list[Put], list[Unchanged]]:
    """Note in the epoch that the session has left its place: that ends it, wherever the session goes on."""
    open_ = await room.store.select("epoch", session=session, mark=Mark.OPEN)
    epochs = [replace(record.value(), left=True) for record in open_]
    puts = [
        Put(session, "epoch", epoch.id, stored.strip("epoch", epoch), mark=stored.mark(epoch))
        for epoch in epochs
    ]
    return puts, [Unchanged(session, "epoch", record.id, record.seq) for record in open_]

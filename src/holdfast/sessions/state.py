"""A session as a client that joins wants it, in one answer."""

import msgspec

from holdfast.runtime import authority, plan
from holdfast.runtime.history import History
from holdfast.runtime.room import Engine
from holdfast.schema.part import StepFinishPart, StepStartPart
from holdfast.schema.rule import Rule
from holdfast.schema.session import Session
from holdfast.schema.todo import Todo
from holdfast.sessions import reading
from holdfast.sessions.reading import Messages
from holdfast.sessions.room import Room, found
from holdfast.store.query import MessageQuery


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The session, its latest messages, its todos, its snapshots in order, and what its agent may do.

    `recoverable`: a crash left a call whose outcome is unknown; the session waits for `resume` or a prompt.
    """

    info: Session
    messages: Messages
    todos: tuple[Todo, ...]
    snapshots: tuple[str, ...]
    permission: tuple[Rule, ...]
    busy: bool
    recoverable: bool


async def read(room: Room, engine: Engine, session: str, *, limit: int) -> State:
    """Everything in one answer; each part is as it was when it was read."""
    record = await found(room, session)
    info = record.value()
    page = await reading.messages(room, MessageQuery(session, limit=limit, system=False))
    around = await engine.around(info)
    policy = await authority.policy_of(engine, info, around, authority.agent_of(info, around))
    history = await History(engine.store, session).read()
    return State(
        info=info,
        messages=page,
        todos=tuple(await reading.todos(room, session)),
        snapshots=tuple(_snapshots(page)),
        permission=policy.rules,
        busy=record.busy,
        recoverable=not record.busy and plan.is_recoverable(history),
    )


def _snapshots(page: Messages) -> list[str]:
    found = [
        part.snapshot
        for message in page.messages
        for part in message.parts
        if isinstance(part, StepStartPart | StepFinishPart) and part.snapshot is not None
    ]
    return list(dict.fromkeys(found))

"""A session as a client that joins wants it, in one answer."""

from collections.abc import Iterator

import msgspec

from holdfast.permission.policy import Policy
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.epoch import policy as authority
from holdfast.runtime.history import work
from holdfast.schema.part import StepFinishPart, StepStartPart
from holdfast.schema.permission import Rule
from holdfast.schema.session import Session
from holdfast.schema.session_lists import Todo
from holdfast.sessions import read
from holdfast.sessions.access import StoreAccess, found
from holdfast.sessions.read import Messages
from holdfast.store.query import MessageQuery


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The session, its latest messages, its todos, its snapshots in order, and what its agent may do.

    `permission` are the rules of the session and its agent, the last match of which counts; of `ceilings`,
    the rules of the sessions above and of files that may only tighten, each is judged by itself, and the
    strictest verdict of all holds. `recoverable`: a crash left a call whose outcome is unknown; the session
    waits for `resume` or a prompt.
    """

    info: Session
    messages: Messages
    todos: tuple[Todo, ...]
    snapshots: tuple[str, ...]
    permission: tuple[Rule, ...]
    ceilings: tuple[tuple[Rule, ...], ...]
    busy: bool
    recoverable: bool


async def read_state(access: StoreAccess, engine: Engine, session: str, *, limit: int) -> State:
    """Everything in one answer; each part is as it was when it was read."""
    record = await found(access, session)
    info = record.value()
    page = await read.messages(access, MessageQuery(session, limit=limit, system=False))
    workspace = await engine.workspace(info)
    policy = await authority.policy_of(engine, info, workspace, authority.agent_of(info, workspace))
    history = await read.latest(access, session)
    return State(
        info=info,
        messages=page,
        todos=tuple(await read.todos(access, session)),
        snapshots=tuple(_snapshots(page)),
        permission=policy.rules,
        ceilings=tuple(_ceilings(policy)),
        busy=record.busy,
        recoverable=not record.busy and work.is_recoverable(history),
    )


def _ceilings(policy: Policy) -> Iterator[tuple[Rule, ...]]:
    yield from map(tuple, policy.restrictions)
    if policy.above is not None:
        yield policy.above.rules
        yield from _ceilings(policy.above)


def _snapshots(page: Messages) -> list[str]:
    found = [
        part.snapshot
        for message in page.messages
        for part in message.parts
        if isinstance(part, StepStartPart | StepFinishPart) and part.snapshot is not None
    ]
    return list(dict.fromkeys(found))

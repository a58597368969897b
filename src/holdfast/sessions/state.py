"""A session's whole state for a client that attaches, in one answer."""

from collections.abc import Iterator

import msgspec

from holdfast.permission.policy import Policy
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.epoch import policy as authority
from holdfast.runtime.history import work
from holdfast.schema.permission import Rule
from holdfast.schema.session import Session
from holdfast.schema.session_lists import Todo
from holdfast.schema.snapshot import Snapshot
from holdfast.sessions import read, snapshots
from holdfast.sessions.access import StoreAccess, require_session
from holdfast.sessions.read import Messages
from holdfast.store.query import MessageQuery


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The session, its latest messages with the snapshots that they tell of, its todos, and what its agent
    may do.

    `permission`: the rules of the session and its agent; the last match counts. `ceilings`: the rules of the
    sessions above, and of files that may only tighten; each list is evaluated by itself, and the strictest
    verdict of all holds. `recoverable`: a crash left a call with an unknown outcome, and the session waits
    for `resume` or a prompt.
    """

    info: Session
    messages: Messages
    todos: tuple[Todo, ...]
    snapshots: tuple[Snapshot, ...]
    permission: tuple[Rule, ...]
    ceilings: tuple[tuple[Rule, ...], ...]
    busy: bool
    recoverable: bool


async def read_state(access: StoreAccess, engine: Engine, session: str, *, limit: int) -> State:
    """Read everything; each part is as of the moment it was read."""
    record = await require_session(access, session)
    info = record.value()
    page = await read.messages(access, MessageQuery(session, limit=limit, system=False))
    workspace = await engine.workspace(info)
    policy = await authority.policy_of(engine, info, workspace, authority.agent_of(info, workspace))
    history = await read.latest(access, session)
    return State(
        info=info,
        messages=page,
        todos=tuple(await read.todos(access, session)),
        snapshots=tuple(snapshots.in_order(page.messages)),
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

"""What a session may do: the rules of its agent and its own, never more than the session above it."""

from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.errors import NotFound
from holdfast.permission.policy import Policy
from holdfast.runtime.engine.engine import Engine
from holdfast.schema import typed
from holdfast.schema.agent import Agent
from holdfast.schema.message import AssistantMessage
from holdfast.schema.permission import Rule, Ruleset
from holdfast.schema.session import CEILINGS, FORK, Session
from holdfast.store.query import MessageQuery
from holdfast.workspace.workspace import Workspace

DEPTH_MAX: Final = 32
_LATEST: Final = 20


async def policy_of(
    engine: Engine, session: Session, workspace: Workspace, agent: Agent, *, depth: int = DEPTH_MAX
) -> Policy:
    """The policy, with that of the whole tree above it."""
    above = None
    if session.parent_id is not None and depth == 0:
        above = Policy((Rule(permission="*", pattern="*", action="deny"),))  # Too deep to be read whole.
    elif session.parent_id is not None:
        record = await engine.store.session(session.parent_id)
        if record is not None:
            parent = record.value()
            there = await engine.workspace(parent)
            agent_above = agent_of(await _with_latest_agent(engine, parent), there)
            above = await policy_of(engine, parent, there, agent_above, depth=depth - 1)
    places = workspace.places
    return Policy(
        rules=(*agent.permission, *(session.permission or ())),
        restrictions=(*workspace.agents.restrictions(agent.name), *_left_behind(session)),
        above=above,
        top=str(places.directory if places.worktree.parent == places.worktree else places.worktree),
    )


def _left_behind(session: Session) -> list[Ruleset]:
    """The rules of the sessions above the one that this is a fork of: they may only tighten."""
    origin = (session.metadata or {}).get(FORK)
    try:
        return typed.convert(origin.get(CEILINGS, []) if isinstance(origin, dict) else [], list[Ruleset])
    except msgspec.ValidationError:
        # Not in a form that we write: deny everything, since anything may have been forbidden.
        return [[Rule(permission="*", pattern="*", action="deny")]]


async def _with_latest_agent(engine: Engine, session: Session) -> Session:
    """The session with the agent of its latest turn; what a waiting prompt chose does not count yet."""
    cursor: str | None = None
    while True:
        query = MessageQuery(session.id, limit=_LATEST, system=False, before=cursor)
        page = await engine.store.messages(query)
        for message in reversed(page.messages):
            info = message.info.value()
            if isinstance(info, AssistantMessage) and not info.summary:
                return replace(session, agent=info.agent)
        if (cursor := page.older) is None:
            return session


def agent_of(session: Session, workspace: Workspace) -> Agent:
    """The agent of a session; the default one when it names none, or one that is gone."""
    try:
        return workspace.agents.get(session.agent or workspace.agents.default)
    except NotFound:
        return workspace.agents.get(workspace.agents.default)

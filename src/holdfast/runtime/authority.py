"""What a session may do: the rules of its agent and its own, never more than the session above it."""

from typing import Final

from holdfast.errors import NotFound
from holdfast.permission.policy import Policy
from holdfast.runtime.room import Engine
from holdfast.runtime.surroundings import Surroundings
from holdfast.schema.agent import Agent
from holdfast.schema.rule import Rule
from holdfast.schema.session import Session

DEPTH_MAX: Final = 32


async def policy_of(
    engine: Engine, session: Session, around: Surroundings, agent: Agent, *, depth: int = DEPTH_MAX
) -> Policy:
    """The policy, with that of the whole tree above it."""
    above = None
    if session.parent_id is not None and depth == 0:
        above = Policy((Rule(permission="*", pattern="*", action="deny"),))  # Too deep to be looked at whole.
    elif session.parent_id is not None:
        record = await engine.store.session(session.parent_id)
        if record is not None:
            parent = record.value()
            there = await engine.around(parent)
            above = await policy_of(engine, parent, there, agent_of(parent, there), depth=depth - 1)
    return Policy(
        rules=(*agent.permission, *(session.permission or ())),
        restrictions=around.agents.restrictions(agent.name),
        above=above,
    )


def agent_of(session: Session, around: Surroundings) -> Agent:
    """The agent of a session; the default one when it names none, or one that is gone."""
    try:
        return around.agents.get(session.agent or around.agents.default)
    except NotFound:
        return around.agents.get(around.agents.default)

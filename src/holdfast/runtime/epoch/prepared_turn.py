"""Who answers the next turn, sampled once: session, surroundings, agent, model, policy."""

import msgspec

from holdfast.permission.policy import Policy
from holdfast.provider.catalog.model import Model
from holdfast.schema.agent import Agent
from holdfast.schema.message import UserMessage
from holdfast.schema.session import Session
from holdfast.workspace.workspace import Surroundings


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt chose. A switch after this counts for the next turn."""

    session: Session
    around: Surroundings
    user: UserMessage
    agent: Agent
    model: Model
    policy: Policy

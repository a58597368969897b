"""Everything one provider turn uses: who answers it, sampled once, and what the model is sent."""

import msgspec

from holdfast.permission.policy import Policy
from holdfast.provider.catalog.model import Model
from holdfast.provider.request.request import ToolDefinition
from holdfast.runtime.history.epoch import Epoch
from holdfast.schema.agent import Agent
from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.session import Session
from holdfast.tools.registry import Toolset
from holdfast.workspace.workspace import Workspace


class Sampled(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt chose. A switch after this counts for the next turn."""

    session: Session
    workspace: Workspace
    user: UserMessage
    agent: Agent
    model: Model
    policy: Policy


class PreparedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """All that one turn needs, fixed."""

    session: Session
    workspace: Workspace
    user: UserMessage
    agent: Agent
    model: Model
    variant: str | None
    epoch: Epoch
    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    moved: tuple[str, ...]
    """Why the prefix may differ from that of the request before, as far as it is known here."""
    history: list[MessageWithParts]
    """Everything that was said since the last compaction, in its order."""
    toolset: Toolset
    policy: Policy
    last_step: bool
    compacts: bool
    """Whether a request that does not fit is compacted without the user's request."""
    owed: bool = True
    """Whether the model has something to answer, apart from a compaction."""
    rests: bool = False
    """Whether it has, and waits for a prompt or `resume` to go on with it: see `plan.rests`."""
    asked: MessageWithParts | None = None
    """A compaction that somebody asked for, and that was not tried yet."""

    compacted: bool = False
    """Whether the model sees a summary in the place of the beginning."""
    shown: list[MessageWithParts]
    """What the model sees of the history."""

"""Everything one provider turn uses: agent and model, sampled once, and what the model is sent."""

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
    """What a prompt chose. A later switch counts for the next turn."""

    session: Session
    workspace: Workspace
    user: UserMessage
    agent: Agent
    model: Model
    policy: Policy


class PreparedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one provider turn uses. Fixed at the boundary; nothing in it changes until the turn ends."""

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
    """The reasons known at the boundary why the prefix may differ from that of the request before."""
    history: list[MessageWithParts]
    """All messages since the last compaction, in order."""
    toolset: Toolset
    policy: Policy
    last_step: bool
    compacts: bool
    """Whether a request that does not fit is compacted automatically."""
    owed: bool = True
    """Whether the model owes an answer, apart from a compaction."""
    rests: bool = False
    """Whether it owes an answer and the work rests: see `work.rests`."""
    asked: MessageWithParts | None = None
    """A compaction that the user requested and that was not tried yet."""

    compacted: bool = False
    """Whether the model view begins with a summary."""
    shown: list[MessageWithParts]
    """The model view of the history."""

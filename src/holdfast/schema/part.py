"""The twelve kinds of part, by `type`. A message says what its parts say, in the order of their creation."""

from typing import ClassVar, Literal

from holdfast.schema.fault import APIFault
from holdfast.schema.file_change import FileChange
from holdfast.schema.file_part import FilePart, PartHead
from holdfast.schema.ids import MessageID
from holdfast.schema.model import ModelRef
from holdfast.schema.source import AgentSource
from holdfast.schema.times import Created, Span
from holdfast.schema.tool_state import ToolState
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Count, JsonMap, Num, Wire


class TextPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text. `synthetic`: made by the host, hidden, sent to the model. `ignored`: shown, and not sent."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    metadata: JsonMap | None = None


class ReasoningPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="reasoning"):
    """What the model thought aloud. Provider signatures stand in `metadata` and must come back unchanged."""

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    text: str
    time: Span
    metadata: JsonMap | None = None


class ToolPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="tool"):
    """One tool call. `metadata.providerExecuted` marks a tool that ran at the provider."""

    type: ClassVar[Literal["tool"]] = "tool"
    call_id: str
    tool: str
    state: ToolState
    metadata: JsonMap | None = None


class StepPrefix(Wire, frozen=True, kw_only=True):
    """The blocks of the request, each by the name of its bytes: the first `kept` are named by the steps
    before and equal, the others are listed. `moved` says why the request before is not a prefix of this one;
    `block` is the first that differs.
    """

    epoch: str
    kept: Count
    blocks: list[str]
    moved: str | None = None
    block: Count | None = None
    chars: Count | None = None
    """How long all of them are: with the provider's count of tokens it gives how long a token is."""


class StepStartPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="step-start"):
    """A provider turn began, with the files as in this tree.

    `prefix` is ours: the digests of the request's blocks. So is `left`: the tree when its calls had ended.
    """

    type: ClassVar[Literal["step-start"]] = "step-start"
    snapshot: str | None = None
    left: str | None = None
    prefix: StepPrefix | None = None


class StepFinishPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="step-finish"):
    """A provider turn ended. `cost_known` is ours: False beside a cost of 0 that says nothing."""

    type: ClassVar[Literal["step-finish"]] = "step-finish"
    reason: str
    snapshot: str | None = None
    cost: Num
    cost_known: bool | None = None
    tokens: Tokens


class SnapshotPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="snapshot"):
    """A tree of files. Only old records have it."""

    type: ClassVar[Literal["snapshot"]] = "snapshot"
    snapshot: str


class PatchPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="patch"):
    """The files (absolute paths) that a step changed, against the tree `hash`.

    `changes` are ours: those that no tool noted by itself, as they were observed at the end of the step.
    """

    type: ClassVar[Literal["patch"]] = "patch"
    hash: str
    files: list[str]
    changes: list[FileChange] | None = None


class AgentPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="agent"):
    """An agent that the prompt mentions."""

    type: ClassVar[Literal["agent"]] = "agent"
    name: str
    source: AgentSource | None = None


class RetryPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="retry"):
    """A provider call that failed and was tried again: stored with the answer, never shown to the model."""

    type: ClassVar[Literal["retry"]] = "retry"
    attempt: Count
    error: APIFault
    time: Created


class CompactionPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="compaction"):
    """A request to compact. Messages from `tail_start_id` on are kept beside the summary.

    `attempt` is ours: which one it is since an answer last came.
    """

    type: ClassVar[Literal["compaction"]] = "compaction"
    auto: bool
    overflow: bool | None = None
    tail_start_id: MessageID | None = None
    attempt: Count | None = None


class SubtaskPart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="subtask"):
    """Work that the user gave to a subagent."""

    type: ClassVar[Literal["subtask"]] = "subtask"
    prompt: str
    description: str
    agent: str
    model: ModelRef | None = None
    command: str | None = None


Part = (
    TextPart
    | ReasoningPart
    | FilePart
    | ToolPart
    | StepStartPart
    | StepFinishPart
    | SnapshotPart
    | PatchPart
    | AgentPart
    | RetryPart
    | CompactionPart
    | SubtaskPart
)

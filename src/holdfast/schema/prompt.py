"""The Admitted Prompt: what a user or caller sent, durably accepted and not yet visible to the model.

Promotion makes a user message with the same id of it. `promoted` is when; until then the prompt is pending.
"""

from typing import ClassVar, Literal

from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.model import ModelRef
from holdfast.schema.output_format import OutputFormat
from holdfast.schema.source import AgentSource, Source
from holdfast.schema.times import Created, Span
from holdfast.schema.wire import Count, JsonMap, Record, Wire

Delivery = Literal["steer", "queue"]
"""steer joins the running work at its next boundary; queue waits until the session would go idle."""


class TextPartInput(Wire, frozen=True, kw_only=True, tag_field="type", tag="text"):
    type: ClassVar[Literal["text"]] = "text"
    id: PartID | None = None
    text: str
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    metadata: JsonMap | None = None


class FilePartInput(Wire, frozen=True, kw_only=True, tag_field="type", tag="file"):
    type: ClassVar[Literal["file"]] = "file"
    id: PartID | None = None
    mime: str
    filename: str | None = None
    url: str
    source: Source | None = None


class AgentPartInput(Wire, frozen=True, kw_only=True, tag_field="type", tag="agent"):
    type: ClassVar[Literal["agent"]] = "agent"
    id: PartID | None = None
    name: str
    source: AgentSource | None = None


class SubtaskPartInput(Wire, frozen=True, kw_only=True, tag_field="type", tag="subtask"):
    type: ClassVar[Literal["subtask"]] = "subtask"
    id: PartID | None = None
    prompt: str
    description: str
    agent: str
    model: ModelRef | None = None
    command: str | None = None


class CompactionPartInput(Wire, frozen=True, kw_only=True, tag_field="type", tag="compaction"):
    """Ours: a request to compact. Clients ask for it by a call of its own, not with a prompt."""

    type: ClassVar[Literal["compaction"]] = "compaction"
    id: PartID | None = None
    auto: bool = False


PartInput = TextPartInput | FilePartInput | AgentPartInput | SubtaskPartInput | CompactionPartInput


class AdmittedPrompt(Record, frozen=True, kw_only=True):
    """One row of the inbox."""

    id: MessageID
    session_id: SessionID
    parts: list[PartInput]
    delivery: Delivery
    agent: str | None = None
    model: ModelRef | None = None
    variant: str | None = None
    system: str | None = None
    tools: dict[str, bool] | None = None
    format: OutputFormat | None = None
    no_reply: bool | None = None
    placement: str | None = None
    """Where it is to be run, when its admitting process could not: an owner there takes it up, unless an
    interrupt comes before that."""
    time: Created
    promoted: Count | None = None

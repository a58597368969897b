"""Messages: who speaks, by `role`. Their content stands in the parts, which are records of their own."""

from typing import Any

import msgspec

from holdfast.schema.fault import Fault
from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.model import ModelRef
from holdfast.schema.output_format import OutputFormat
from holdfast.schema.part import Part
from holdfast.schema.session_lists import FileDiff
from holdfast.schema.times import Created
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Count, JsonMap, Num, Record, Wire


class MessageHead(Record, frozen=True, kw_only=True):
    """What every message begins with; the store keeps these apart (see `stored.py`)."""

    id: MessageID
    session_id: SessionID


class UserSummary(Wire, frozen=True, kw_only=True):
    """What the turn that answered a user message changed."""

    title: str | None = None
    body: str | None = None
    diffs: list[FileDiff]


class UserMessage(MessageHead, frozen=True, kw_only=True, tag_field="role", tag="user"):
    """A promoted prompt. `system` is sent to the model behind it, as a system message."""

    time: Created
    agent: str
    model: ModelRef
    format: OutputFormat | None = None
    system: str | None = None
    tools: dict[str, bool] | None = None
    summary: UserSummary | None = None
    no_reply: bool | None = None
    """A note: it is sent with the next turn, and neither asks for one nor changes how it is answered."""


class AssistantTime(Wire, frozen=True, kw_only=True):
    created: Count
    completed: Count | None = None


class AssistantPath(Wire, frozen=True, kw_only=True):
    """Where the assistant worked: the session's directory, and the root of its worktree."""

    cwd: str
    root: str


class AssistantMessage(MessageHead, frozen=True, kw_only=True, tag_field="role", tag="assistant"):
    """One answer of the model. `cost` sums its steps, `tokens` is the last step's; `mode` mirrors `agent`.

    `summary` marks the message that compaction wrote: the model's history begins with it.
    """

    time: AssistantTime
    parent_id: MessageID
    model_id: str
    provider_id: str
    mode: str
    agent: str
    path: AssistantPath
    cost: Num
    tokens: Tokens
    error: Fault | None = None
    summary: bool | None = None
    structured: Any = None
    variant: str | None = None
    finish: str | None = None


class SystemMessage(MessageHead, frozen=True, kw_only=True, tag_field="role", tag="system"):
    """A Mid-Conversation System Message, with the Context Snapshot that it produced: a cut restores it."""

    time: Created
    text: str
    snapshot: JsonMap | None = None


Message = UserMessage | AssistantMessage | SystemMessage


class MessageWithParts(msgspec.Struct, frozen=True, gc=False):
    """A message and its content."""

    info: Message
    parts: tuple[Part, ...]

"""Messages: who speaks, by `role`. Their content stands in the parts, which are records of their own."""

from typing import Any, ClassVar, Literal

import msgspec

from holdfast.errors import HoldfastError
from holdfast.schema.fault import AbortedFault, APIFault, Fault
from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.model import ModelRef
from holdfast.schema.output_format import OutputFormat
from holdfast.schema.part import Part, TextPart
from holdfast.schema.session_lists import FileDiff
from holdfast.schema.times import Created
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Count, JsonMap, Num, Record, Wire
from holdfast.text import one_line

MESSAGE_MAX = 500


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

    role: ClassVar[Literal["user"]] = "user"
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

    role: ClassVar[Literal["assistant"]] = "assistant"
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

    role: ClassVar[Literal["system"]] = "system"
    time: Created
    text: str
    snapshot: JsonMap | None = None


Message = UserMessage | AssistantMessage | SystemMessage


class MessageWithParts(msgspec.Struct, frozen=True, gc=False):
    """A message and its content."""

    info: Message
    parts: tuple[Part, ...]

    @property
    def id(self) -> MessageID:
        """The id of the message."""
        return self.info.id

    @property
    def text(self) -> str:
        """What it says to a reader: its text parts, with an empty line between them.

        What is only for the model is left out, as are thoughts and calls.
        """
        if isinstance(self.info, SystemMessage):
            return self.info.text
        said = (part.text for part in self.parts if isinstance(part, TextPart) and not part.synthetic)
        return "\n\n".join(text for text in said if text)

    @property
    def error(self) -> Fault | None:
        """Why an answer failed; None for one that did not, and for what is no answer."""
        return self.info.error if isinstance(self.info, AssistantMessage) else None

    @property
    def structured(self) -> Any:
        """The value of an answer whose form was asked for (`format`); None without one."""
        return self.info.structured if isinstance(self.info, AssistantMessage) else None

    def raise_for_error(self) -> None:
        """Raise `AnswerFailed` if the answer ended with an error."""
        if self.error is not None:
            raise AnswerFailed(self)


class AnswerFailed(HoldfastError):
    """A prompt was admitted and worked on, and its answer ended with an error.

    `answer` holds the message with everything that came before the error; it stays in the session, and the
    next prompt goes on from there. `name` and `message` are those of the recorded error. `retryable`: the
    same prompt may succeed later. `status`: the HTTP status of the provider's answer, where there was one.
    """

    def __init__(self, answer: MessageWithParts) -> None:
        # The answer is the exception's only argument, so that it survives pickling between processes.
        super().__init__(answer)
        fault = answer.error
        assert fault is not None
        self.answer = answer
        self.fault = fault
        self.name: str = fault.name
        self.message: str = getattr(fault.data, "message", "") or "the answer was cut off at its limit"
        self.retryable = isinstance(fault, APIFault) and fault.data.is_retryable
        self.status = fault.data.status_code if isinstance(fault, APIFault) else None
        self.interrupted = isinstance(fault, AbortedFault)

    def __str__(self) -> str:
        return f"{self.name} in session {self.answer.info.session_id}: {one_line(self.message, MESSAGE_MAX)}"

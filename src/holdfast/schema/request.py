"""What a running session waits for from outside: a permission, an answer to a question, or an order to stop.

Requests are durable, so that the answer may come through another process or after a restart. A request is
open until `time.answered` is set.
"""

from typing import ClassVar, Literal

from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.wire import Count, JsonMap, Record, Wire

Reply = Literal["once", "always", "reject"]


class RequestTime(Wire, frozen=True, kw_only=True):
    """`heard` is when the call went on with the answer: from then on it may have had its effect."""

    created: Count
    answered: Count | None = None
    heard: Count | None = None


class ToolRef(Wire, frozen=True, kw_only=True):
    """The tool call that asks."""

    message_id: MessageID
    call_id: str


class RequestHead(Record, frozen=True, kw_only=True):
    """What every request begins with; the store keeps these apart (see `stored.py`)."""

    id: str
    session_id: SessionID


class PermissionAnswer(Wire, frozen=True, kw_only=True):
    """A rejection with a message goes to the model; one without stops the work."""

    reply: Reply
    message: str | None = None


class PermissionRequest(RequestHead, frozen=True, kw_only=True, tag_field="type", tag="permission"):
    """May this be done? `always` lists the patterns that an "always" would allow."""

    type: ClassVar[Literal["permission"]] = "permission"
    permission: str
    patterns: list[str]
    metadata: JsonMap
    always: list[str]
    tool: ToolRef | None = None
    time: RequestTime
    answer: PermissionAnswer | None = None


class QuestionOption(Wire, frozen=True, kw_only=True):
    label: str
    description: str


class Question(Wire, frozen=True, kw_only=True):
    """`custom` (a typed answer is welcome) counts as true when absent."""

    question: str
    header: str
    options: list[QuestionOption]
    multiple: bool | None = None
    custom: bool | None = None


class QuestionAnswer(Wire, frozen=True, kw_only=True):
    """The labels chosen (or text typed), question by question; absent when the user dismissed them."""

    answers: list[list[str]] | None = None


class QuestionRequest(RequestHead, frozen=True, kw_only=True, tag_field="type", tag="question"):
    """The model asks the user."""

    type: ClassVar[Literal["question"]] = "question"
    questions: list[Question]
    tool: ToolRef | None = None
    time: RequestTime
    answer: QuestionAnswer | None = None


class InterruptRequest(RequestHead, frozen=True, kw_only=True, tag_field="type", tag="interrupt"):
    """The user or a program wants the session to stop. The owner that runs it answers by stopping."""

    type: ClassVar[Literal["interrupt"]] = "interrupt"
    reason: str | None = None
    owner: str | None = None
    """The owner that ran the session then, and whose work is meant: no other obeys. None means any."""
    claim: Count | None = None
    """The number of its claim then: a later run of the same owner does not obey. None means any."""
    time: RequestTime


Request = PermissionRequest | QuestionRequest | InterruptRequest

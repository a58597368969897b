"""The events of the bus: what happened, by `type`, with its `properties`.

An event that carries a record announces state that is in the store; the others (`session.error`,
`session.idle`, `session.status`, deltas, those of terminals) are live only and never replayed. The feed gives
an event its id when it leaves the process.
"""

from typing import ClassVar, Literal, assert_never

from holdfast.schema.event_head import EventHead
from holdfast.schema.fault import Fault
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.mcp_status import McpState
from holdfast.schema.message import Message
from holdfast.schema.part import Part
from holdfast.schema.project import Project
from holdfast.schema.request import (
    InterruptRequest,
    PermissionRequest,
    Question,
    QuestionRequest,
    Reply,
    Request,
    RequestTime,
    ToolRef,
)
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.status import SessionStatus
from holdfast.schema.terminal_event import PtyCreated, PtyDeleted, PtyExited, PtyUpdated
from holdfast.schema.wire import Count, JsonMap, Wire


class OfSession(Wire, frozen=True, kw_only=True):
    session_id: SessionID


class SessionProperties(OfSession, frozen=True, kw_only=True):
    info: Session


class SessionCreated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.created"):
    type: ClassVar[Literal["session.created"]] = "session.created"
    properties: SessionProperties


class SessionUpdated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.updated"):
    """Always the whole session."""

    type: ClassVar[Literal["session.updated"]] = "session.updated"
    properties: SessionProperties


class SessionDeleted(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.deleted"):
    type: ClassVar[Literal["session.deleted"]] = "session.deleted"
    properties: SessionProperties


class DiffProperties(OfSession, frozen=True, kw_only=True):
    diff: list[FileDiff]


class SessionDiff(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.diff"):
    type: ClassVar[Literal["session.diff"]] = "session.diff"
    properties: DiffProperties


class ErrorProperties(Wire, frozen=True, kw_only=True):
    session_id: SessionID | None = None
    error: Fault | None = None


class SessionError(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.error"):
    type: ClassVar[Literal["session.error"]] = "session.error"
    properties: ErrorProperties


class StatusProperties(OfSession, frozen=True, kw_only=True):
    status: SessionStatus


class SessionStatusChanged(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.status"):
    type: ClassVar[Literal["session.status"]] = "session.status"
    properties: StatusProperties


class SessionIdle(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.idle"):
    type: ClassVar[Literal["session.idle"]] = "session.idle"
    properties: OfSession


class SessionCompacted(EventHead, frozen=True, kw_only=True, tag_field="type", tag="session.compacted"):
    type: ClassVar[Literal["session.compacted"]] = "session.compacted"
    properties: OfSession


class MessageProperties(OfSession, frozen=True, kw_only=True):
    info: Message


class MessageUpdated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="message.updated"):
    type: ClassVar[Literal["message.updated"]] = "message.updated"
    properties: MessageProperties


class OfMessage(OfSession, frozen=True, kw_only=True):
    message_id: MessageID


class MessageRemoved(EventHead, frozen=True, kw_only=True, tag_field="type", tag="message.removed"):
    type: ClassVar[Literal["message.removed"]] = "message.removed"
    properties: OfMessage


class PartProperties(OfSession, frozen=True, kw_only=True):
    part: Part
    time: Count


class PartUpdated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="message.part.updated"):
    type: ClassVar[Literal["message.part.updated"]] = "message.part.updated"
    properties: PartProperties


class OfPart(OfMessage, frozen=True, kw_only=True):
    part_id: PartID


class PartRemoved(EventHead, frozen=True, kw_only=True, tag_field="type", tag="message.part.removed"):
    type: ClassVar[Literal["message.part.removed"]] = "message.part.removed"
    properties: OfPart


class DeltaProperties(OfPart, frozen=True, kw_only=True):
    """`delta` continues `field` at `offset`, counted in code points, so that a late reader can join it."""

    field: str
    delta: str
    offset: Count


class PartDelta(EventHead, frozen=True, kw_only=True, tag_field="type", tag="message.part.delta"):
    type: ClassVar[Literal["message.part.delta"]] = "message.part.delta"
    properties: DeltaProperties


class TodoProperties(OfSession, frozen=True, kw_only=True):
    todos: list[Todo]


class TodoUpdated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="todo.updated"):
    type: ClassVar[Literal["todo.updated"]] = "todo.updated"
    properties: TodoProperties


class FileProperties(Wire, frozen=True, kw_only=True):
    file: str


class FileEdited(EventHead, frozen=True, kw_only=True, tag_field="type", tag="file.edited"):
    """A tool wrote or removed a file. Live only."""

    type: ClassVar[Literal["file.edited"]] = "file.edited"
    properties: FileProperties


class FileWatcherProperties(FileProperties, frozen=True, kw_only=True):
    event: Literal["add", "change", "unlink"]


class FileWatcherUpdated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="file.watcher.updated"):
    """A file of a watched project has come, changed or gone, by whatever process. Live only."""

    type: ClassVar[Literal["file.watcher.updated"]] = "file.watcher.updated"
    properties: FileWatcherProperties


class McpServerProperties(Wire, frozen=True, kw_only=True):
    directory: str
    server: str


class McpToolsChanged(EventHead, frozen=True, kw_only=True, tag_field="type", tag="mcp.tools.changed"):
    """An MCP server offers other tools than before. Live only."""

    type: ClassVar[Literal["mcp.tools.changed"]] = "mcp.tools.changed"
    properties: McpServerProperties


class McpStatusProperties(McpServerProperties, frozen=True, kw_only=True):
    status: McpState
    error: str | None = None


class McpStatusChanged(EventHead, frozen=True, kw_only=True, tag_field="type", tag="mcp.status"):
    """An MCP server was connected, or is away. Live only."""

    type: ClassVar[Literal["mcp.status"]] = "mcp.status"
    properties: McpStatusProperties


class PermissionAskProperties(Wire, frozen=True, kw_only=True):
    """A permission request as clients know it: without what only our record of it has."""

    id: str
    session_id: SessionID
    permission: str
    patterns: list[str]
    metadata: JsonMap
    always: list[str]
    tool: ToolRef | None = None


class PermissionAsked(EventHead, frozen=True, kw_only=True, tag_field="type", tag="permission.asked"):
    type: ClassVar[Literal["permission.asked"]] = "permission.asked"
    properties: PermissionAskProperties


class OfRequest(OfSession, frozen=True, kw_only=True):
    request_id: str


class PermissionReplyProperties(OfRequest, frozen=True, kw_only=True):
    reply: Reply


class PermissionReplied(EventHead, frozen=True, kw_only=True, tag_field="type", tag="permission.replied"):
    type: ClassVar[Literal["permission.replied"]] = "permission.replied"
    properties: PermissionReplyProperties


class QuestionAskProperties(Wire, frozen=True, kw_only=True):
    """A question request as clients know it: without what only our record of it has."""

    id: str
    session_id: SessionID
    questions: list[Question]
    tool: ToolRef | None = None


class QuestionAsked(EventHead, frozen=True, kw_only=True, tag_field="type", tag="question.asked"):
    type: ClassVar[Literal["question.asked"]] = "question.asked"
    properties: QuestionAskProperties


class QuestionReplyProperties(OfRequest, frozen=True, kw_only=True):
    answers: list[list[str]]


class QuestionReplied(EventHead, frozen=True, kw_only=True, tag_field="type", tag="question.replied"):
    type: ClassVar[Literal["question.replied"]] = "question.replied"
    properties: QuestionReplyProperties


class QuestionRejected(EventHead, frozen=True, kw_only=True, tag_field="type", tag="question.rejected"):
    type: ClassVar[Literal["question.rejected"]] = "question.rejected"
    properties: OfRequest


class ProjectUpdated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="project.updated"):
    type: ClassVar[Literal["project.updated"]] = "project.updated"
    properties: Project


Event = (
    SessionCreated
    | SessionUpdated
    | SessionDeleted
    | SessionDiff
    | SessionError
    | SessionStatusChanged
    | SessionIdle
    | SessionCompacted
    | MessageUpdated
    | MessageRemoved
    | PartUpdated
    | PartRemoved
    | PartDelta
    | TodoUpdated
    | FileEdited
    | FileWatcherUpdated
    | McpToolsChanged
    | McpStatusChanged
    | PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
    | ProjectUpdated
    | PtyCreated
    | PtyUpdated
    | PtyExited
    | PtyDeleted
)


Requesting = PermissionAsked | PermissionReplied | QuestionAsked | QuestionReplied | QuestionRejected


def requesting(request: Request) -> Requesting | None:
    """The event that shows a request as it is: open, or answered; None for an order to stop, which is no
    client's.
    """
    match request:
        case PermissionRequest(time=RequestTime(answered=None)):
            return PermissionAsked(
                properties=PermissionAskProperties(
                    id=request.id,
                    session_id=request.session_id,
                    permission=request.permission,
                    patterns=request.patterns,
                    metadata=request.metadata,
                    always=request.always,
                    tool=request.tool,
                )
            )
        case PermissionRequest():
            reply = "reject" if request.answer is None else request.answer.reply
            return PermissionReplied(
                properties=PermissionReplyProperties(
                    session_id=request.session_id, request_id=request.id, reply=reply
                )
            )
        case QuestionRequest(time=RequestTime(answered=None)):
            return QuestionAsked(
                properties=QuestionAskProperties(
                    id=request.id,
                    session_id=request.session_id,
                    questions=request.questions,
                    tool=request.tool,
                )
            )
        case QuestionRequest():
            session = request.session_id
            answers = None if request.answer is None else request.answer.answers
            if answers is None:
                return QuestionRejected(properties=OfRequest(session_id=session, request_id=request.id))
            return QuestionReplied(
                properties=QuestionReplyProperties(session_id=session, request_id=request.id, answers=answers)
            )
        case InterruptRequest():
            return None
        case _:
            assert_never(request)

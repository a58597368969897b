"""Holdfast: a durable session runtime for AI coding agents.

    import holdfast
    print(holdfast.run_sync("Why does test_parse fail?").text)

Everything that a program needs is a name of this package; `docs/library.md` shows it in use, and what tests
need is in `holdfast.testing`. Importing the package loads nothing but the version, because every command pays
for what stands here: a name is loaded when it is first used.
"""

import sys

from holdfast.version import __version__

TYPE_CHECKING = False  # Type checkers know the name; importing it from typing would cost 6 ms.
if TYPE_CHECKING:
    from holdfast.app import Holdfast, open
    from holdfast.clock import Clock
    from holdfast.context.registry import SystemContextRegistry
    from holdfast.context.source import ABSENT, UNAVAILABLE, Codec, ContextSource, Missing
    from holdfast.context.system_context import SystemContext
    from holdfast.errors import (
        Ambiguous,
        CallerError,
        Conflict,
        ContextError,
        HoldfastError,
        InvalidInput,
        InvariantBroken,
        LeaseLost,
        NotFound,
        ProviderError,
        RecordCorrupt,
        Refused,
        StoreBusy,
        StoreDamaged,
        StoreError,
        StoreMissing,
        StoreTooNew,
        StoreUnsure,
        UndoConflict,
    )
    from holdfast.feed.frame import RESYNC, Frame
    from holdfast.location.project import Location
    from holdfast.location.terminal.environment import PtyEnvironment
    from holdfast.one_prompt import run, run_sync
    from holdfast.provider.port import Provider
    from holdfast.runtime.engine.engine import OnAsk, Presence
    from holdfast.runtime.inbox.admission import Admitted
    from holdfast.schema.budget import Budget, Spent
    from holdfast.schema.event import (
        Event,
        FileEdited,
        FileWatcherUpdated,
        McpStatusChanged,
        McpToolsChanged,
        MessageRemoved,
        MessageUpdated,
        PartDelta,
        PartRemoved,
        PartUpdated,
        PermissionAsked,
        PermissionReplied,
        ProjectUpdated,
        QuestionAsked,
        QuestionRejected,
        QuestionReplied,
        SessionCompacted,
        SessionCreated,
        SessionDeleted,
        SessionDiff,
        SessionError,
        SessionIdle,
        SessionStatusChanged,
        SessionUpdated,
        TodoUpdated,
    )
    from holdfast.schema.fault import (
        AbortedFault,
        APIFault,
        BudgetFault,
        ContentFilterFault,
        ContextFault,
        ContextOverflowFault,
        Fault,
        OutputLengthFault,
        ProviderAuthFault,
        StructuredOutputFault,
        UnknownFault,
    )
    from holdfast.schema.file_part import FilePart
    from holdfast.schema.mcp_status import McpStatus
    from holdfast.schema.message import (
        AnswerFailed,
        AssistantMessage,
        Message,
        MessageWithParts,
        SystemMessage,
        UserMessage,
    )
    from holdfast.schema.model import ModelRef, SessionModel
    from holdfast.schema.output_format import JsonSchemaFormat, OutputFormat, TextFormat
    from holdfast.schema.part import (
        AgentPart,
        CompactionPart,
        Part,
        PatchPart,
        ReasoningPart,
        RetryPart,
        SnapshotPart,
        StepFinishPart,
        StepStartPart,
        SubtaskPart,
        TextPart,
        ToolPart,
    )
    from holdfast.schema.permission import Rule
    from holdfast.schema.project import Project
    from holdfast.schema.prompt import (
        AdmittedPrompt,
        AgentPartInput,
        Delivery,
        FilePartInput,
        PartInput,
        SubtaskPartInput,
        TextPartInput,
    )
    from holdfast.schema.request import (
        PermissionAnswer,
        PermissionRequest,
        Question,
        QuestionAnswer,
        QuestionRequest,
        Reply,
    )
    from holdfast.schema.session import Session
    from holdfast.schema.session_lists import FileDiff, Todo
    from holdfast.schema.terminal import Terminal, TerminalOutput
    from holdfast.schema.terminal_event import PtyCreated, PtyDeleted, PtyExited, PtyUpdated
    from holdfast.schema.tool_state import ToolCompleted, ToolError, ToolPending, ToolRunning, ToolState
    from holdfast.schema.usage import Tokens
    from holdfast.sessions.context import ContextView
    from holdfast.sessions.read import Messages, Sessions
    from holdfast.sessions.state import State
    from holdfast.sessions.undo.result import Undo, UndoneFile
    from holdfast.store.query import SearchQuery, SessionQuery
    from holdfast.store.record import Found, Hit
    from holdfast.toolkit.context import ToolContext
    from holdfast.toolkit.declare import Tool, tool
    from holdfast.toolkit.output import Attachment, ToolDenied, ToolFailure, ToolOutput

__all__ = [
    "ABSENT",
    "RESYNC",
    "UNAVAILABLE",
    "APIFault",
    "AbortedFault",
    "Admitted",
    "AdmittedPrompt",
    "AgentPart",
    "AgentPartInput",
    "Ambiguous",
    "AnswerFailed",
    "AssistantMessage",
    "Attachment",
    "Budget",
    "BudgetFault",
    "CallerError",
    "Clock",
    "Codec",
    "CompactionPart",
    "Conflict",
    "ContentFilterFault",
    "ContextError",
    "ContextFault",
    "ContextOverflowFault",
    "ContextSource",
    "ContextView",
    "Delivery",
    "Event",
    "Fault",
    "FileDiff",
    "FileEdited",
    "FilePart",
    "FilePartInput",
    "FileWatcherUpdated",
    "Found",
    "Frame",
    "Hit",
    "Holdfast",
    "HoldfastError",
    "InvalidInput",
    "InvariantBroken",
    "JsonSchemaFormat",
    "LeaseLost",
    "Location",
    "McpStatus",
    "McpStatusChanged",
    "McpToolsChanged",
    "Message",
    "MessageRemoved",
    "MessageUpdated",
    "MessageWithParts",
    "Messages",
    "Missing",
    "ModelRef",
    "NotFound",
    "OnAsk",
    "OutputFormat",
    "OutputLengthFault",
    "Part",
    "PartDelta",
    "PartInput",
    "PartRemoved",
    "PartUpdated",
    "PatchPart",
    "PermissionAnswer",
    "PermissionAsked",
    "PermissionReplied",
    "PermissionRequest",
    "Presence",
    "Project",
    "ProjectUpdated",
    "Provider",
    "ProviderAuthFault",
    "ProviderError",
    "PtyCreated",
    "PtyDeleted",
    "PtyEnvironment",
    "PtyExited",
    "PtyUpdated",
    "Question",
    "QuestionAnswer",
    "QuestionAsked",
    "QuestionRejected",
    "QuestionReplied",
    "QuestionRequest",
    "ReasoningPart",
    "RecordCorrupt",
    "Refused",
    "Reply",
    "RetryPart",
    "Rule",
    "SearchQuery",
    "Session",
    "SessionCompacted",
    "SessionCreated",
    "SessionDeleted",
    "SessionDiff",
    "SessionError",
    "SessionIdle",
    "SessionModel",
    "SessionQuery",
    "SessionStatusChanged",
    "SessionUpdated",
    "Sessions",
    "SnapshotPart",
    "Spent",
    "State",
    "StepFinishPart",
    "StepStartPart",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreMissing",
    "StoreTooNew",
    "StoreUnsure",
    "StructuredOutputFault",
    "SubtaskPart",
    "SubtaskPartInput",
    "SystemContext",
    "SystemContextRegistry",
    "SystemMessage",
    "Terminal",
    "TerminalOutput",
    "TextFormat",
    "TextPart",
    "TextPartInput",
    "Todo",
    "TodoUpdated",
    "Tokens",
    "Tool",
    "ToolCompleted",
    "ToolContext",
    "ToolDenied",
    "ToolError",
    "ToolFailure",
    "ToolOutput",
    "ToolPart",
    "ToolPending",
    "ToolRunning",
    "ToolState",
    "Undo",
    "UndoConflict",
    "UndoneFile",
    "UnknownFault",
    "UserMessage",
    "__version__",
    "open",
    "run",
    "run_sync",
    "tool",
]

if sys.platform == "win32":
    raise ImportError("Holdfast does not run on Windows: it needs Linux or macOS (WSL works as Linux).")

# The names of `__all__`, by the module that has them. A test compares the three lists.
_NAMES = {
    "holdfast.app": "Holdfast open",
    "holdfast.clock": "Clock",
    "holdfast.context.registry": "SystemContextRegistry",
    "holdfast.context.source": "ABSENT UNAVAILABLE Codec ContextSource Missing",
    "holdfast.context.system_context": "SystemContext",
    "holdfast.errors": (
        "Ambiguous CallerError Conflict ContextError HoldfastError InvalidInput InvariantBroken LeaseLost "
        "NotFound ProviderError RecordCorrupt Refused StoreBusy StoreDamaged StoreError StoreMissing "
        "StoreTooNew StoreUnsure UndoConflict"
    ),
    "holdfast.feed.frame": "RESYNC Frame",
    "holdfast.location.project": "Location",
    "holdfast.location.terminal.environment": "PtyEnvironment",
    "holdfast.one_prompt": "run run_sync",
    "holdfast.provider.port": "Provider",
    "holdfast.runtime.engine.engine": "OnAsk Presence",
    "holdfast.runtime.inbox.admission": "Admitted",
    "holdfast.schema.budget": "Budget Spent",
    "holdfast.schema.event": (
        "Event FileEdited FileWatcherUpdated McpStatusChanged McpToolsChanged MessageRemoved MessageUpdated "
        "PartDelta PartRemoved PartUpdated PermissionAsked PermissionReplied ProjectUpdated QuestionAsked "
        "QuestionRejected QuestionReplied SessionCompacted SessionCreated SessionDeleted SessionDiff "
        "SessionError SessionIdle SessionStatusChanged SessionUpdated TodoUpdated"
    ),
    "holdfast.schema.fault": (
        "APIFault AbortedFault BudgetFault ContentFilterFault ContextFault ContextOverflowFault Fault "
        "OutputLengthFault ProviderAuthFault StructuredOutputFault UnknownFault"
    ),
    "holdfast.schema.file_part": "FilePart",
    "holdfast.schema.mcp_status": "McpStatus",
    "holdfast.schema.message": (
        "AnswerFailed AssistantMessage Message MessageWithParts SystemMessage UserMessage"
    ),
    "holdfast.schema.model": "ModelRef SessionModel",
    "holdfast.schema.output_format": "JsonSchemaFormat OutputFormat TextFormat",
    "holdfast.schema.part": (
        "AgentPart CompactionPart Part PatchPart ReasoningPart RetryPart SnapshotPart StepFinishPart "
        "StepStartPart SubtaskPart TextPart ToolPart"
    ),
    "holdfast.schema.permission": "Rule",
    "holdfast.schema.project": "Project",
    "holdfast.schema.prompt": (
        "AdmittedPrompt AgentPartInput Delivery FilePartInput PartInput SubtaskPartInput TextPartInput"
    ),
    "holdfast.schema.request": (
        "PermissionAnswer PermissionRequest Question QuestionAnswer QuestionRequest Reply"
    ),
    "holdfast.schema.session": "Session",
    "holdfast.schema.session_lists": "FileDiff Todo",
    "holdfast.schema.terminal": "Terminal TerminalOutput",
    "holdfast.schema.terminal_event": "PtyCreated PtyDeleted PtyExited PtyUpdated",
    "holdfast.schema.tool_state": "ToolCompleted ToolError ToolPending ToolRunning ToolState",
    "holdfast.schema.usage": "Tokens",
    "holdfast.sessions.context": "ContextView",
    "holdfast.sessions.read": "Messages Sessions",
    "holdfast.sessions.state": "State",
    "holdfast.sessions.undo.result": "Undo UndoneFile",
    "holdfast.store.query": "SearchQuery SessionQuery",
    "holdfast.store.record": "Found Hit",
    "holdfast.toolkit.context": "ToolContext",
    "holdfast.toolkit.declare": "Tool tool",
    "holdfast.toolkit.output": "Attachment ToolDenied ToolFailure ToolOutput",
}
_MODULE = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # A type checker that saw it would accept any name.

    def __getattr__(name: str) -> object:
        """Load a name when it is first used."""
        if (module := _MODULE.get(name)) is None:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(module), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)

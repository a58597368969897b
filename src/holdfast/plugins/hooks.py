"""The hooks: for each, what a plugin is told and what it may change.

A plugin is any object whose methods carry a hook's name with dots as underscores:

    class Polite:
        async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
            output.temperature = 0.2

Inputs are frozen; outputs are changed in place. A plain function is run in a thread. Names and meaning are
the specification's; `holdfast.plugins.dispatcher` says how hooks are called.
"""

from typing import Any, Generic, TypeVar

import msgspec

from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.model import ModelRef
from holdfast.schema.part import Part
from holdfast.schema.request import PermissionRequest
from holdfast.schema.wire import JsonMap

I = TypeVar("I")  # noqa: E741 - input
O = TypeVar("O")  # noqa: E741 - output


class Hook(msgspec.Struct, Generic[I, O], frozen=True):
    """A place where plugins may join in: its name, and the types of what goes in and what may be changed."""

    name: str
    input: type[I]
    output: type[O]

    @property
    def method(self) -> str:
        """The name of the plugin's method."""
        return self.name.replace(".", "_")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin is told."""


class Changeable(msgspec.Struct, kw_only=True):
    """What a plugin may change."""


class Nothing(Changeable):
    """Nothing can be changed: the plugin only listens."""


class ConfigSeen(Told, frozen=True, kw_only=True):
    """The effective settings, credentials left out."""

    config: JsonMap


class Happened(Told, frozen=True, kw_only=True):
    """An event of the bus, as clients see it."""

    event: JsonMap


class Prompted(Told, frozen=True, kw_only=True):
    session_id: str
    agent: str | None = None
    model: ModelRef | None = None
    message_id: str | None = None
    variant: str | None = None


class PromptMade(Changeable, kw_only=True):
    message: UserMessage
    parts: list[Part]


class ChatTurn(Told, frozen=True, kw_only=True):
    """A request that is about to be sent."""

    session_id: str
    agent: str
    model: ModelRef
    message: UserMessage | None = None


class ChatParams(Changeable, kw_only=True):
    """Generation Controls, and Model Request Options."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_output_tokens: int | None = None
    options: JsonMap = msgspec.field(default_factory=dict)


class ChatHeaders(Changeable, kw_only=True):
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class PermissionAsked(Told, frozen=True, kw_only=True):
    request: PermissionRequest


class PermissionStatus(Changeable, kw_only=True):
    """`allow` counts only where the rules say ask: a plugin cannot lift a deny."""

    status: str = "ask"


class CommandGiven(Told, frozen=True, kw_only=True):
    command: str
    session_id: str
    arguments: str


class CommandParts(Changeable, kw_only=True):
    parts: list[Part]


class ToolNamed(Told, frozen=True, kw_only=True):
    tool_id: str


class ToolDefined(Changeable, kw_only=True):
    description: str
    parameters: JsonMap


class ToolBefore(Told, frozen=True, kw_only=True):
    tool: str
    session_id: str
    call_id: str


class ToolArguments(Changeable, kw_only=True):
    args: JsonMap


class ToolAfter(Told, frozen=True, kw_only=True):
    tool: str
    session_id: str
    call_id: str
    args: JsonMap


class ToolOutcome(Changeable, kw_only=True):
    title: str
    output: str
    metadata: JsonMap


class ShellWhere(Told, frozen=True, kw_only=True):
    cwd: str
    session_id: str | None = None
    call_id: str | None = None


class ShellEnv(Changeable, kw_only=True):
    env: dict[str, str] = msgspec.field(default_factory=dict)


class MessagesSeen(Told, frozen=True, kw_only=True):
    """Nothing but the moment: the history is about to be lowered."""


class MessagesShown(Changeable, kw_only=True):
    """The model's view of the history; the stored one is not touched."""

    messages: list[MessageWithParts]


class SystemSeen(Told, frozen=True, kw_only=True):
    session_id: str | None = None
    model: ModelRef


class SystemShown(Changeable, kw_only=True):
    system: list[str]


class Compacting(Told, frozen=True, kw_only=True):
    session_id: str


class CompactionAsked(Changeable, kw_only=True):
    context: list[str] = msgspec.field(default_factory=list)
    prompt: str | None = None


class Compacted(Told, frozen=True, kw_only=True):
    session_id: str
    agent: str
    model: ModelRef
    message: UserMessage | None = None
    overflow: bool = False


class AutoContinue(Changeable, kw_only=True):
    enabled: bool = True


class TextSeen(Told, frozen=True, kw_only=True):
    session_id: str
    message_id: str
    part_id: str


class TextShown(Changeable, kw_only=True):
    text: str


class SmallModelSeen(Told, frozen=True, kw_only=True):
    provider: str


class SmallModel(Changeable, kw_only=True):
    model: str | None = None


class Ending(Told, frozen=True, kw_only=True):
    """The runtime closes."""


CONFIG = Hook("config", ConfigSeen, Nothing)
EVENT = Hook("event", Happened, Nothing)
DISPOSE = Hook("dispose", Ending, Nothing)
CHAT_MESSAGE = Hook("chat.message", Prompted, PromptMade)
CHAT_PARAMS = Hook("chat.params", ChatTurn, ChatParams)
CHAT_HEADERS = Hook("chat.headers", ChatTurn, ChatHeaders)
PERMISSION_ASK = Hook("permission.ask", PermissionAsked, PermissionStatus)
COMMAND_EXECUTE_BEFORE = Hook("command.execute.before", CommandGiven, CommandParts)
TOOL_DEFINITION = Hook("tool.definition", ToolNamed, ToolDefined)
TOOL_EXECUTE_BEFORE = Hook("tool.execute.before", ToolBefore, ToolArguments)
TOOL_EXECUTE_AFTER = Hook("tool.execute.after", ToolAfter, ToolOutcome)
SHELL_ENV = Hook("shell.env", ShellWhere, ShellEnv)
MESSAGES_TRANSFORM = Hook("experimental.chat.messages.transform", MessagesSeen, MessagesShown)
SYSTEM_TRANSFORM = Hook("experimental.chat.system.transform", SystemSeen, SystemShown)
SESSION_COMPACTING = Hook("experimental.session.compacting", Compacting, CompactionAsked)
COMPACTION_AUTOCONTINUE = Hook("experimental.compaction.autocontinue", Compacted, AutoContinue)
TEXT_COMPLETE = Hook("experimental.text.complete", TextSeen, TextShown)
SMALL_MODEL = Hook("experimental.provider.small_model", SmallModelSeen, SmallModel)

HOOKS: tuple[Hook[Any, Any], ...] = (
    CONFIG,
    EVENT,
    DISPOSE,
    CHAT_MESSAGE,
    CHAT_PARAMS,
    CHAT_HEADERS,
    PERMISSION_ASK,
    COMMAND_EXECUTE_BEFORE,
    TOOL_DEFINITION,
    TOOL_EXECUTE_BEFORE,
    TOOL_EXECUTE_AFTER,
    SHELL_ENV,
    MESSAGES_TRANSFORM,
    SYSTEM_TRANSFORM,
    SESSION_COMPACTING,
    COMPACTION_AUTOCONTINUE,
    TEXT_COMPLETE,
    SMALL_MODEL,
)

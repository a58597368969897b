"""The hooks: what a plugin is given at each, and what it may change. Only those that some part calls.

A plugin is any object whose methods carry a hook's name with dots as underscores:

    class Polite:
        async def shell_env(self, input: ShellWhere, output: ShellEnv) -> None:
            output.env["PAGER"] = "cat"

Inputs are frozen; outputs are changed in place. A plain function is run in a thread. Names and meaning are
the specification's; `holdfast.plugins.dispatcher` says how hooks are called.
"""

from typing import Generic, TypeVar

import msgspec

from holdfast.schema.message import UserMessage
from holdfast.schema.model import ModelRef
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


class HookInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin is given."""


class HookOutput(msgspec.Struct, kw_only=True):
    """What a plugin may change."""


class ToolNamed(HookInput, frozen=True, kw_only=True):
    tool_id: str


class ToolDefined(HookOutput, kw_only=True):
    description: str
    parameters: JsonMap


class ToolBefore(HookInput, frozen=True, kw_only=True):
    tool: str
    session_id: str
    call_id: str


class ToolArguments(HookOutput, kw_only=True):
    args: JsonMap


class ToolAfter(HookInput, frozen=True, kw_only=True):
    tool: str
    session_id: str
    call_id: str
    args: JsonMap


class ToolOutcome(HookOutput, kw_only=True):
    title: str
    output: str
    metadata: JsonMap


class ShellWhere(HookInput, frozen=True, kw_only=True):
    cwd: str
    session_id: str | None = None
    call_id: str | None = None


class ShellEnv(HookOutput, kw_only=True):
    env: dict[str, str] = msgspec.field(default_factory=dict)


class SystemSeen(HookInput, frozen=True, kw_only=True):
    session_id: str | None = None
    model: ModelRef


class SystemShown(HookOutput, kw_only=True):
    system: list[str]


class Compacting(HookInput, frozen=True, kw_only=True):
    session_id: str


class CompactionAsked(HookOutput, kw_only=True):
    context: list[str] = msgspec.field(default_factory=list)
    prompt: str | None = None


class Compacted(HookInput, frozen=True, kw_only=True):
    session_id: str
    agent: str
    model: ModelRef
    message: UserMessage | None = None
    overflow: bool = False


class AutoContinue(HookOutput, kw_only=True):
    enabled: bool = True


TOOL_DEFINITION = Hook("tool.definition", ToolNamed, ToolDefined)
TOOL_EXECUTE_BEFORE = Hook("tool.execute.before", ToolBefore, ToolArguments)
TOOL_EXECUTE_AFTER = Hook("tool.execute.after", ToolAfter, ToolOutcome)
SHELL_ENV = Hook("shell.env", ShellWhere, ShellEnv)
SYSTEM_TRANSFORM = Hook("experimental.chat.system.transform", SystemSeen, SystemShown)
SESSION_COMPACTING = Hook("experimental.session.compacting", Compacting, CompactionAsked)
COMPACTION_AUTOCONTINUE = Hook("experimental.compaction.autocontinue", Compacted, AutoContinue)

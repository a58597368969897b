"""What plugins may change of a call: its arguments before it runs, what it answered afterwards.

The record keeps the arguments as the model wrote them: they go back to the model that way.
"""

from msgspec.structs import replace

from holdfast.plugins.dispatcher import Dispatcher
from holdfast.plugins.hooks import (
    TOOL_EXECUTE_AFTER,
    TOOL_EXECUTE_BEFORE,
    ToolAfter,
    ToolArguments,
    ToolBefore,
    ToolOutcome,
)
from holdfast.schema.part import ToolPart
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.output import ToolOutput


class ToolHooks:
    """The hooks of one call."""

    def __init__(self, plugins: Dispatcher, part: ToolPart) -> None:
        self._plugins = plugins
        self._part = part
        self._args = part.state.input

    async def before(self, args: JsonMap) -> JsonMap:
        """The arguments that the tool gets."""
        if self._plugins.wants(TOOL_EXECUTE_BEFORE):
            part = self._part
            seen = ToolBefore(tool=part.tool, session_id=part.session_id, call_id=part.call_id)
            changed = await self._plugins.call(TOOL_EXECUTE_BEFORE, seen, ToolArguments(args=args))
            self._args = changed.args
        return self._args

    async def after(self, output: ToolOutput) -> ToolOutput:
        """What is recorded and shown of its answer."""
        if not self._plugins.wants(TOOL_EXECUTE_AFTER):
            return output
        part = self._part
        seen = ToolAfter(tool=part.tool, session_id=part.session_id, call_id=part.call_id, args=self._args)
        shown = ToolOutcome(title=output.title, output=output.text, metadata=output.metadata)
        changed = await self._plugins.call(TOOL_EXECUTE_AFTER, seen, shown)
        return replace(output, title=changed.title, text=changed.output, metadata=changed.metadata)

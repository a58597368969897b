"""Pins the definitions of tools, as plugins have changed them.

What must stay true: the hook `tool.definition` runs where a definition is pinned, once for each tool and
epoch, and never with a request: the prefix does not move.
"""

from holdfast.plugins.hooks import TOOL_DEFINITION, ToolDefined, ToolNamed
from holdfast.provider.request.request import ToolDefinition
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.prepared_turn import Sampled
from holdfast.runtime.epoch import pins
from holdfast.runtime.epoch.pins import Pinned
from holdfast.schema.wire import JsonMap
from holdfast.tools.registry import Toolset


async def pin(engine: Engine, chosen: Sampled, known: JsonMap, toolset: Toolset) -> Pinned:
    """What the turn begins with, given what its epoch has pinned so far."""
    tools = pins.definitions(toolset)
    plugins = engine.plugins(chosen.workspace)
    shaped: dict[str, ToolDefinition] = {}
    if plugins.wants(TOOL_DEFINITION):
        for tool in pins.unpinned(known, chosen.agent, chosen.model, tools):
            given = ToolDefined(description=tool.description, parameters=tool.input)
            made = await plugins.call(TOOL_DEFINITION, ToolNamed(tool_id=tool.name), given)
            if made.parameters.get("type") != "object":
                engine.warn(
                    f"a plugin gave the tool {tool.name} arguments that are no object; left as they were"
                )
                continue
            shaped[tool.name] = ToolDefinition(
                name=tool.name, description=made.description, input=made.parameters
            )
    return pins.pinned(known, chosen.agent, chosen.model, tools, shaped)

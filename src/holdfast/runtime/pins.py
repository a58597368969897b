"""What an epoch pins for an agent on a family of models: instruction texts and tool definitions. Pure.

Pinned bytes outlive restarts, upgrades and servers that are down: a tool that is away stays in the request,
and a call of it fails in words. What moves them, once, and is told as the reason:
- `agent`: the person edited the agent's own text;
- `tools`: a tool appeared, or takes other arguments than the model was told. A description that an upgrade
  made better can wait for the next epoch; arguments that no longer fit cannot.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from holdfast.config import builtin_agents
from holdfast.provider.catalog.model import Model
from holdfast.provider.instructions import choose
from holdfast.provider.request import ToolDefinition
from holdfast.schema.agent import Agent
from holdfast.schema.wire import JsonMap

Moved = Literal["agent", "tools"]


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The texts and tools of one agent on one family. `own` names the person's own text for the agent."""

    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    own: str | None = None


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """What a request begins with. `pins` is what the epoch has to keep, when that changed."""

    pin: Pin
    pins: JsonMap | None = None
    moved: Moved | None = None


def pinned(pins: JsonMap, agent: Agent, model: Model, tools: Sequence[ToolDefinition]) -> Pinned:
    """The pin for a turn, made when there is none yet."""
    key = key_of(agent, model)
    known = _known(pins.get(key))
    own = _own_text(agent)
    fresh = Pin(system=choose.system_blocks(model, agent), tools=_sorted(tools), own=own)
    if known is None:
        return Pinned(pin=fresh, pins=_with(pins, key, fresh))
    pin, moved = known, None
    if known.own != own:
        pin, moved = Pin(system=fresh.system, tools=pin.tools, own=own), "agent"
    if _has_other_tools(known.tools, tools):
        shown = {tool.name: tool for tool in known.tools} | _changed(known.tools, tools)
        pin = Pin(system=pin.system, tools=_sorted(tuple(shown.values())), own=own)
        moved = moved or "tools"
    if moved is None:
        return Pinned(pin=known)
    return Pinned(pin=pin, pins=_with(pins, key, pin), moved="agent" if moved == "agent" else "tools")


def key_of(agent: Agent, model: Model) -> str:
    """Agents on one family of models share what they are told."""
    family = "brief" if choose.is_brief(model) else choose.family(model)
    return f"{agent.name}/{family}" if model.tool_call else f"{agent.name}/{family}/no-tools"


def _own_text(agent: Agent) -> str | None:
    """The name of what the person wrote for the agent; None for a text of ours, which an upgrade changes."""
    if not agent.prompt or (agent.native and agent.prompt == builtin_agents.instructions(agent.name)):
        return None
    return hashlib.sha256(agent.prompt.encode()).hexdigest()[:16]


def _has_other_tools(known: Sequence[ToolDefinition], tools: Sequence[ToolDefinition]) -> bool:
    return bool(_changed(known, tools))


def _changed(known: Sequence[ToolDefinition], tools: Sequence[ToolDefinition]) -> dict[str, ToolDefinition]:
    """The tools that the model was not told of, or not with these arguments."""
    inputs = {tool.name: tool.input for tool in known}
    return {tool.name: tool for tool in tools if inputs.get(tool.name) != tool.input}


def _sorted(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    return tuple(sorted(tools, key=lambda tool: tool.name))


def _known(data: object) -> Pin | None:
    """The pin as it was kept; one of another version is made anew."""
    try:
        return None if data is None else msgspec.convert(data, Pin)
    except msgspec.ValidationError:
        return None


def _with(pins: JsonMap, key: str, pin: Pin) -> JsonMap:
    return {**pins, key: msgspec.to_builtins(pin)}

"""What an epoch pins for an agent on a family of models: instruction texts and tool definitions. Pure.

Pinned bytes outlive restarts, upgrades and servers that are down: a tool that is away stays in the request,
and a call of it fails with an explanation. What moves them, once, and is the recorded reason:
- `agent`: the user edited the agent's own text;
- `tools`: a tool appeared, or takes other arguments than the model was told. A description that an upgrade
  made better can wait for the next epoch; arguments that no longer fit cannot.

Plugins change a definition before it is pinned, and never afterwards (`tool_definitions.py`).
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from holdfast.config import builtin_agents
from holdfast.provider.catalog.model import Model
from holdfast.provider.instructions import choose
from holdfast.provider.request import prefix
from holdfast.provider.request.request import ToolDefinition
from holdfast.runtime.epoch import prefix_change
from holdfast.schema import typed
from holdfast.schema.agent import Agent
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.declare import Tool
from holdfast.tools import structured
from holdfast.tools.registry import Toolset

Moved = Literal["agent", "tools"]
EARLIER_MAX: Final = 8


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The texts and tools of one agent on one family of models. `own` is a digest of the user's own text."""

    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    own: str | None = None
    declared: dict[str, str] = {}
    """By tool, a digest of the arguments that it declares, where a plugin has put others in their place."""
    earlier: tuple["Earlier", ...] = ()
    """Its earlier states, the latest first: a fork from that time continues with them."""


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier state of a pin."""

    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    own: str | None = None
    declared: dict[str, str] = {}


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """What a request begins with. `pins`: what the epoch has to store, if that changed."""

    pin: Pin
    pins: JsonMap | None = None
    moved: Moved | None = None


def pinned(
    pins: JsonMap,
    agent: Agent,
    model: Model,
    tools: Sequence[ToolDefinition],
    shaped: Mapping[str, ToolDefinition] = MappingProxyType({}),
) -> Pinned:
    """The pin for a turn; a new one if the epoch has none for this agent.

    `shaped`: by name, what plugins made of the tools that are `unpinned`.
    """
    key = key_of(agent, model)
    known = _known(pins.get(key))
    own = _own_text(agent)
    system = _shared_text(pins, key, choose.system_blocks(model, agent))
    if known is None:
        fresh = _with_tools(Pin(system=system, tools=(), own=own), pins, tools, shaped)
        return Pinned(pin=fresh, pins=_with(pins, key, fresh))
    pin = known
    moved: Moved | None = None
    if known.own != own:
        pin, moved = replace(pin, system=system, own=own), "agent"
    if others := _others(known, tools):
        pin = _with_tools(pin, pins, others, shaped)
        moved = moved or "tools"
    if moved is None:
        return Pinned(pin=known)
    pin = replace(pin, earlier=(_earlier(known), *known.earlier)[:EARLIER_MAX])
    return Pinned(pin=pin, pins=_with(pins, key, pin), moved=moved)


def unpinned(
    pins: JsonMap, agent: Agent, model: Model, tools: Sequence[ToolDefinition]
) -> list[ToolDefinition]:
    """The tools that a turn would pin now: pinned for no agent of the epoch, or with other arguments."""
    known = _known(pins.get(key_of(agent, model)))
    others = tools if known is None else _others(known, tools)
    return [tool for tool in others if _pin_with(pins, tool) is None]


class Sent(msgspec.Struct, frozen=True):
    """A request that was sent: the names of its blocks, its tools besides the pinned ones, and the texts
    after the pinned ones.
    """

    names: Sequence[str]
    tools: tuple[ToolDefinition, ...] = ()
    system: tuple[str, ...] = ()


class Restored(msgspec.Struct, frozen=True):
    """Pins of an earlier time. `moved`: they are not stored any more, so the next request differs."""

    pins: JsonMap
    moved: Moved | None = None


def restored(pins: JsonMap, sent: Sent) -> Restored:
    """The pins at the time of a request: later moves are undone."""
    found, has_begun = dict(pins), not sent.names
    for key, data in pins.items():
        pin = _known(data)
        for back in () if pin is None else _lives(pin):
            if _begins(back, sent):
                has_begun = True
                found[key] = data if back is pin else msgspec.to_builtins(back)
                break
    return Restored(found, None if has_begun else _moved_since(pins, sent))


def _lives(pin: Pin) -> Iterator[Pin]:
    """The pin and its earlier states, the latest first."""
    yield pin
    for number, before in enumerate(pin.earlier):
        rest = pin.earlier[number + 1 :]
        yield Pin(
            system=before.system,
            tools=before.tools,
            own=before.own,
            declared=before.declared,
            earlier=rest,
        )


def _begins(pin: Pin, sent: Sent) -> bool:
    """Whether the request began with the pin."""
    names = prefix.names_of((*_sorted((*pin.tools, *sent.tools)), *pin.system, *sent.system))
    return prefix_change.begins(sent.names, names)


def _moved_since(pins: JsonMap, sent: Sent) -> Moved:
    """What differs from the request: the tools, if it has the texts of a pin."""
    known = [pin for data in pins.values() if (pin := _known(data)) is not None]
    texts = (prefix.names_of(pin.system) for pin in known)
    return "tools" if any(set(names) <= set(sent.names) for names in texts) else "agent"


def definition(tool: Tool) -> ToolDefinition:
    """A tool's definition for the model."""
    return ToolDefinition(name=tool.name, description=tool.description, input=tool.schema)


def definitions(toolset: Toolset) -> list[ToolDefinition]:
    """The tools' definitions for the model."""
    return [definition(tool) for tool in toolset.tools]


def formed(schema: JsonMap | None) -> tuple[ToolDefinition, ...]:
    """The tool for structured output, which is not pinned."""
    return () if schema is None else (definition(structured.structured_tool(schema)),)


def _earlier(pin: Pin) -> Earlier:
    return Earlier(system=pin.system, tools=pin.tools, own=pin.own, declared=pin.declared)


def _with_tools(
    pin: Pin, pins: JsonMap, tools: Sequence[ToolDefinition], shaped: Mapping[str, ToolDefinition]
) -> Pin:
    """The pin with tools in the place of those of their names: as pinned for another agent of the epoch, as
    plugins made them, or as they are.
    """
    shown, declared = {tool.name: tool for tool in pin.tools}, dict(pin.declared)
    for tool in tools:
        other = _pin_with(pins, tool)
        found = shaped.get(tool.name, tool) if other is None else _tool_of(other, tool.name)
        assert found is not None, "that pin has it"
        shown[tool.name] = found
        declared.pop(tool.name, None)
        if found.input != tool.input:
            declared[tool.name] = _digest(tool.input)
    return replace(pin, tools=_sorted(tuple(shown.values())), declared=declared)


def _pin_with(pins: JsonMap, tool: ToolDefinition) -> Pin | None:
    """The first pin of the epoch that has the tool with the arguments that it declares."""
    known = (_known(data) for data in pins.values())
    return next((pin for pin in known if pin is not None and not _others(pin, [tool])), None)


def _tool_of(pin: Pin, name: str) -> ToolDefinition | None:
    return next((tool for tool in pin.tools if tool.name == name), None)


def _digest(arguments: JsonMap) -> str:
    return hashlib.sha256(msgspec.json.encode(arguments, order="deterministic")).hexdigest()[:16]


def _shared_text(pins: JsonMap, key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts, with the base instructions as pinned for other agents on this family of models."""
    family = key.partition("/")[2]
    for other, data in pins.items():
        pin = _known(data) if other.partition("/")[2] == family else None
        if pin is not None and len(texts) > 1 and pin.system:
            return (pin.system[0], *texts[1:])
    return texts


def key_of(agent: Agent, model: Model) -> str:
    """The key of a pin: the agent and the family of the model."""
    family = "brief" if choose.is_brief(model) else choose.family(model)
    return f"{agent.name}/{family}" if model.tool_call else f"{agent.name}/{family}/no-tools"


def _own_text(agent: Agent) -> str | None:
    """A digest of the user's own text for the agent; None for a text of ours, which an upgrade changes."""
    if not agent.prompt or (agent.native and agent.prompt == builtin_agents.instructions(agent.name)):
        return None
    return hashlib.sha256(agent.prompt.encode()).hexdigest()[:16]


def _others(pin: Pin, tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """The tools that the pin does not have, or with other arguments."""
    inputs = {tool.name: tool.input for tool in pin.tools}
    return [
        tool
        for tool in tools
        if (
            _digest(tool.input) != pin.declared[tool.name]
            if tool.name in pin.declared
            else inputs.get(tool.name) != tool.input
        )
    ]


def _sorted(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    return tuple(sorted(tools, key=lambda tool: tool.name))


def _known(data: object) -> Pin | None:
    """The stored pin; None for one of another version, which is made again."""
    try:
        return None if data is None else typed.convert(data, Pin)
    except msgspec.ValidationError:
        return None


def _with(pins: JsonMap, key: str, pin: Pin) -> JsonMap:
    return {**pins, key: msgspec.to_builtins(pin)}

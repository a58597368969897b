"""What an epoch pins for an agent on a family of models: instruction texts and tool definitions. Pure.

Pinned bytes outlive restarts, upgrades and servers that are down: a tool that is away stays in the request,
and a call of it fails with an explanation. What moves them, once, and is the recorded reason:
- `agent`: the user edited the agent's own text;
- `tools`: a tool appeared, or takes other arguments than the model was told. A description that an upgrade
  made better can wait for the next epoch; arguments that no longer fit cannot.
"""

import hashlib
from collections.abc import Iterator, Sequence
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
    earlier: tuple["Earlier", ...] = ()
    """Its earlier states, the latest first: a fork from that time continues with them."""


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier state of a pin."""

    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    own: str | None = None


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """What a request begins with. `pins`: what the epoch has to store, if that changed."""

    pin: Pin
    pins: JsonMap | None = None
    moved: Moved | None = None


def pinned(pins: JsonMap, agent: Agent, model: Model, tools: Sequence[ToolDefinition]) -> Pinned:
    """The pin for a turn; a new one if the epoch has none for this agent."""
    key = key_of(agent, model)
    known = _known(pins.get(key))
    own = _own_text(agent)
    fresh = Pin(
        system=_shared_text(pins, key, choose.system_blocks(model, agent)),
        tools=_sorted(_shared(pins, tools)),
        own=own,
    )
    if known is None:
        return Pinned(pin=fresh, pins=_with(pins, key, fresh))
    pin = known
    moved: Moved | None = None
    if known.own != own:
        pin, moved = Pin(system=fresh.system, tools=pin.tools, own=own), "agent"
    if _has_other_tools(known.tools, tools):
        shown = {tool.name: tool for tool in known.tools} | _changed(known.tools, tools)
        pin = Pin(system=pin.system, tools=_sorted(tuple(shown.values())), own=own)
        moved = moved or "tools"
    if moved is None:
        return Pinned(pin=known)
    pin = replace(pin, earlier=(_earlier(known), *known.earlier)[:EARLIER_MAX])
    return Pinned(pin=pin, pins=_with(pins, key, pin), moved=moved)


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
        yield Pin(system=before.system, tools=before.tools, own=before.own, earlier=rest)


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
    return Earlier(system=pin.system, tools=pin.tools, own=pin.own)


def _known_tools(pins: JsonMap) -> list[ToolDefinition]:
    """Every tool pinned for an agent of the epoch, as it was pinned first."""
    found: dict[str, ToolDefinition] = {}
    for data in pins.values():
        for tool in () if (pin := _known(data)) is None else pin.tools:
            found.setdefault(tool.name, tool)
    return list(found.values())


def _shared(pins: JsonMap, tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """The tools as pinned for other agents of the epoch, where they take the same arguments."""
    known = {tool.name: tool for tool in _known_tools(pins)}
    return [
        known[tool.name] if tool.name in known and known[tool.name].input == tool.input else tool
        for tool in tools
    ]


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


def _has_other_tools(known: Sequence[ToolDefinition], tools: Sequence[ToolDefinition]) -> bool:
    return bool(_changed(known, tools))


def _changed(known: Sequence[ToolDefinition], tools: Sequence[ToolDefinition]) -> dict[str, ToolDefinition]:
    """The tools that are not pinned, or with other arguments."""
    inputs = {tool.name: tool.input for tool in known}
    return {tool.name: tool for tool in tools if inputs.get(tool.name) != tool.input}


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

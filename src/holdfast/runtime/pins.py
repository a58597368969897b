"""What an epoch pins for an agent on a family of models: instruction texts and tool definitions. Pure.

Pinned bytes outlive restarts, upgrades and servers that are down: a tool that is away stays in the request,
and a call of it fails in words. What moves them, once, and is told as the reason:
- `agent`: the person edited the agent's own text;
- `tools`: a tool appeared, or takes other arguments than the model was told. A description that an upgrade
  made better can wait for the next epoch; arguments that no longer fit cannot.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from holdfast.config import builtin_agents
from holdfast.provider import prefix
from holdfast.provider.catalog.model import Model
from holdfast.provider.instructions import choose
from holdfast.provider.request import ToolDefinition
from holdfast.schema.agent import Agent
from holdfast.schema.wire import JsonMap

Moved = Literal["agent", "tools"]
EARLIER_MAX: Final = 8


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The texts and tools of one agent on one family. `own` names the person's own text for the agent."""

    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    own: str | None = None
    earlier: tuple["Earlier", ...] = ()
    """What it was before it moved, the latest first: a fork from then goes on with that."""


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """A pin that moved."""

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


def restored(pins: JsonMap, system_after: Sequence[str], sent: Sequence[str]) -> JsonMap:
    """The pins as they were when a request began with blocks of these names: what moved since is taken back.

    `system_after` are the texts that follow the pinned ones.
    """
    found = dict(pins)
    for key, data in pins.items():
        pin = _known(data)
        if pin is None or not pin.earlier or _begins(pin, system_after, sent):
            continue
        for number, before in enumerate(pin.earlier):
            back = Pin(
                system=before.system, tools=before.tools, own=before.own, earlier=pin.earlier[number + 1 :]
            )
            if _begins(back, system_after, sent):
                found[key] = msgspec.to_builtins(back)
                break
    return found


def _begins(pin: Pin, system_after: Sequence[str], sent: Sequence[str]) -> bool:
    """Whether a request with these names began with the pin."""
    names = prefix.names_of((*pin.tools, *pin.system, *system_after))
    return list(sent[: len(names)]) == names


def _earlier(pin: Pin) -> Earlier:
    return Earlier(system=pin.system, tools=pin.tools, own=pin.own)


def _shared(pins: JsonMap, tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """The tools as other agents of the epoch were told of them, where they take the same arguments."""
    told: dict[str, ToolDefinition] = {}
    for data in pins.values():
        for tool in () if (pin := _known(data)) is None else pin.tools:
            told.setdefault(tool.name, tool)
    return [
        told[tool.name] if tool.name in told and told[tool.name].input == tool.input else tool
        for tool in tools
    ]


def _shared_text(pins: JsonMap, key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts with the base instructions that other agents on this family of models were told."""
    family = key.partition("/")[2]
    for other, data in pins.items():
        pin = _known(data) if other.partition("/")[2] == family else None
        if pin is not None and len(texts) > 1 and pin.system:
            return (pin.system[0], *texts[1:])
    return texts


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

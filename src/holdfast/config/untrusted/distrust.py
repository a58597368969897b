"""What settings of a folder that is not trusted may do, and nothing else.

They may tighten permissions and the box, name instruction files inside the worktree, and bring agents and
commands of their own. They reach no environment and no file, start no program, choose no model or provider,
and take over no name that the user or Holdfast already uses. Whatever is not listed here is left out, and
named.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from holdfast.config import instructions
from holdfast.config.documents import substitute
from holdfast.config.layers import sandbox
from holdfast.config.layers.check import IGNORED
from holdfast.permission import from_config

AGENT_KEYS = ("description", "mode", "prompt", "color", "steps", "temperature", "top_p")
COMMAND_KEYS = ("template", "description", "agent", "subtask")
INSTRUCTIONS_MAX = 50

_SHELL = re.compile(r"!\s*`")
_OUTSIDE = re.compile(r"@(?:[~/]|\S*\.\.)")
_PLACEHOLDER = re.compile(r"\$(?:\d+|ARGUMENTS)")
_LAYERS_MAX = 4


class Reduced(msgspec.Struct, frozen=True):
    """What is left of a layer. Permissions are apart: they may only tighten."""

    value: dict[str, Any]
    permissions: list[Any]
    agent_permissions: dict[str, list[Any]]
    dropped: list[str]


def reduce(value: dict[str, Any], folder: Path = Path("/")) -> Reduced:
    """The harmless part of a layer. `folder`: where it lies."""
    left = Reduced({}, [], {}, [])
    for key, item in _tools_first(value):
        match key, item:
            case _ if key in IGNORED:
                continue
            case "permission", _ if not substitute.refers(item):
                left.permissions.append(item)
            case "tools", dict() if not substitute.refers(item):
                left.permissions.append(from_config.from_tools(item))
            case "instructions", list():
                _instructions(item, left)
            case "sandbox", dict() if not substitute.refers(item):
                kept, rest = sandbox.tightening(item, folder)
                left.value[sandbox.KEY] = kept
                left.dropped.extend(rest)
            case "agent", dict():
                for name, agent in item.items():
                    _agent(name, agent, left)
            case "command", dict():
                for name, command in item.items():
                    _command(name, command, left)
            case _:
                left.dropped.append(key)
    return left


def _tools_first(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """The items in an order in which `permission` has the last word over `tools`, wherever each stands."""
    return sorted(value.items(), key=lambda each: each[0] == "permission")


def reaches_out(template: str) -> bool:
    """Whether an untrusted command text would run something, or name a file outside: as it stands, or once
    its placeholders are filled with nothing.

    The caller that expands such a text asks again about the result: arguments may complete a snippet.
    """
    for _ in range(_LAYERS_MAX):
        if substitute.refers(template) or _SHELL.search(template) or _OUTSIDE.search(template):
            return True
        left = _PLACEHOLDER.sub("", template)
        if left == template:
            return False
        template = left
    return True  # Placeholders inside placeholders are never written in good faith.


def _instructions(items: list[Any], left: Reduced) -> None:
    kept = [item for item in items if instructions.harmless(item) and not substitute.refers(item)]
    if kept:
        left.value["instructions"] = kept[:INSTRUCTIONS_MAX]
    if len(kept) < len(items):
        left.dropped.append("instructions outside the worktree")
    if len(kept) > INSTRUCTIONS_MAX:
        left.dropped.append(f"instructions after the first {INSTRUCTIONS_MAX}")


def _agent(name: str, agent: Any, left: Reduced) -> None:
    if not isinstance(agent, dict) or _unsafe(agent):
        left.dropped.append(f"agent.{name}")
        return
    for key, item in _tools_first(agent):
        match key, item:
            case "permission", _:
                left.agent_permissions.setdefault(name, []).append(item)
            case "tools", dict():
                left.agent_permissions.setdefault(name, []).append(from_config.from_tools(item))
            case _ if key not in AGENT_KEYS:
                left.dropped.append(f"agent.{name}.{key}")
            case _:
                left.value.setdefault("agent", {}).setdefault(name, {})[key] = item


def _command(name: str, command: Any, left: Reduced) -> None:
    template = command.get("template") if isinstance(command, dict) else None
    if not isinstance(template, str) or _unsafe(command) or reaches_out(template):
        left.dropped.append(f"command.{name}")
        return
    left.dropped.extend(f"command.{name}.{key}" for key in command if key not in COMMAND_KEYS)
    kept = {key: item for key, item in command.items() if key in COMMAND_KEYS}
    left.value.setdefault("command", {})[name] = kept


def _unsafe(entry: dict[str, Any]) -> bool:
    """Whether any text of it would run something, or asks for the environment or a file."""
    texts = [item for item in entry.values() if isinstance(item, str)]
    return substitute.refers(entry) or any(_SHELL.search(text) for text in texts)

"""Takes in untrusted entries, where they override nothing: agents and commands under names that no one
uses, and rules that may only tighten.
"""

from typing import Any

import msgspec

from holdfast.config import builtin_agents, builtin_commands
from holdfast.config.layers.merge import Merged, Origin
from holdfast.config.untrusted.distrust import Reduced
from holdfast.permission import from_config
from holdfast.schema import typed
from holdfast.schema.config import PermissionConfig
from holdfast.schema.permission import Ruleset


class UntrustedEntries(msgspec.Struct):
    """What all untrusted folders and hosts together brought."""

    restrictions: list[Ruleset] = []
    agent_restrictions: dict[str, Ruleset] = {}
    agents: set[str] = set()
    commands: set[str] = set()


def names_in_use(merged: Merged) -> dict[str, set[str]]:
    """Names that the user or Holdfast has given: those of the entries, and those that they are shown by."""
    given = {"agent": builtin_agents.NAMES, "command": builtin_commands.NAMES}
    return {
        kind: {
            *names,
            *merged.value.get(kind, {}),
            *(entry["name"] for entry in merged.value.get(kind, {}).values() if entry.get("name")),
        }
        for kind, names in given.items()
    }


def adopt(
    reduced: Reduced,
    origin: Origin,
    *,
    merged: Merged,
    entries: UntrustedEntries,
    known: dict[str, set[str]],
    home: str,
) -> tuple[Ruleset, list[str]]:
    """The rules for every agent, and what could not be taken in."""
    dropped: list[str] = []
    for kind, mine in (("agent", entries.agents), ("command", entries.commands)):
        for name, entry in reduced.value.get(kind, {}).items():
            if name in known[kind]:
                dropped.append(f"{kind}.{name} (the name is taken)")
            else:
                merged.lay({kind: {name: entry}}, origin)
                mine.add(name)
    for name, permissions in reduced.agent_permissions.items():
        rules = _rules(permissions, home, dropped, f"agent.{name}.permission")
        entries.agent_restrictions.setdefault(name, []).extend(rules)
        if name not in known["agent"] and name not in entries.agents:
            # Nothing but permissions: it is still meant as an agent.
            merged.lay({"agent": {name: {}}}, origin)
            entries.agents.add(name)
    return _rules(reduced.permissions, home, dropped, "permission"), dropped


def _rules(permissions: list[Any], home: str, dropped: list[str], name: str) -> Ruleset:
    found: Ruleset = []
    for each in permissions:
        try:
            config = typed.convert(each, PermissionConfig)
        except msgspec.ValidationError:
            dropped.append(name)
        else:
            found.extend(from_config.rules(config, home))
    return found

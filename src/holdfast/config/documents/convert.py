"""Settings in another shape → ours: OpenCode's second generation (plural names, rules in order), and older
names. What does not have the expected shape is left as it is, for the check to name it.
"""

from typing import Any

from holdfast.schema.config import AgentConfig

_PLURALS = {
    "agents": "agent",
    "commands": "command",
    "providers": "provider",
    "permissions": "permission",
    "snapshots": "snapshot",
    "plugins": "plugin",
    "attachments": "attachment",
    "reference": "references",
}
_AGENT_KEYS = frozenset(AgentConfig.__struct_fields__)
_AGENT_NAMES = {"maxSteps": "steps", "topP": "top_p", "system": "prompt", "permissions": "permission"}


def modern(value: dict[str, Any]) -> dict[str, Any]:
    """The settings under the names that `Config` has."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = _PLURALS.get(key, key)
        if name in found and isinstance(item, dict) and isinstance(found[name], dict):
            item = {**item, **found[name]} if key in _PLURALS else {**found[name], **item}  # noqa: PLW2901
        elif name in found and key in _PLURALS:
            continue  # The name that we know says it already.
        found[name] = item
    for key in ("modes", "mode"):
        modes = found.pop(key, None)
        if isinstance(modes, dict) and isinstance(found.get("agent", {}), dict):
            found["agent"] = {
                **found.get("agent", {}),
                **{name: _primary(mode) for name, mode in modes.items()},
            }
    if isinstance(found.get("agent"), dict):
        found["agent"] = {name: agent(item) for name, item in found["agent"].items()}
    if "permission" in found:
        found["permission"] = permission(found["permission"])
    if isinstance(found.get("skills"), list):
        found["skills"] = _skills(found["skills"])
    if isinstance(found.get("compaction"), dict):
        found["compaction"] = _compaction(found["compaction"])
    return found


def agent(value: Any) -> Any:
    """An agent's settings; what is no setting of an agent is an option for the model."""
    if not isinstance(value, dict):
        return value
    named = {_AGENT_NAMES.get(key, key): item for key, item in value.items() if key != "maxSteps"}
    if "maxSteps" in value:
        named.setdefault("steps", value["maxSteps"])
    options = {key: item for key, item in named.items() if key not in _AGENT_KEYS}
    found = {key: item for key, item in named.items() if key in _AGENT_KEYS}
    if options and isinstance(found.get("options", {}), dict):
        found["options"] = {**options, **found.get("options", {})}
    if "permission" in found:
        found["permission"] = permission(found["permission"])
    return found


def permission(value: Any) -> Any:
    """Rules in order are spelled `action`, `resource`, `effect` in the second generation."""
    if not isinstance(value, list):
        return value
    return [
        {"permission": rule["action"], "pattern": rule["resource"], "action": rule["effect"]}
        if isinstance(rule, dict) and {"action", "resource", "effect"} <= rule.keys()
        else rule
        for rule in value
    ]


def _primary(mode: Any) -> Any:
    return {**mode, "mode": "primary"} if isinstance(mode, dict) else mode


def _skills(skills: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"paths": [], "urls": []}
    for item in skills:
        remote = isinstance(item, str) and item.startswith(("http://", "https://"))
        found["urls" if remote else "paths"].append(item)
    return {key: items for key, items in found.items() if items}


def _compaction(value: dict[str, Any]) -> dict[str, Any]:
    found = {key: item for key, item in value.items() if key not in ("keep", "buffer")}
    if isinstance(value.get("keep"), dict) and "tokens" in value["keep"]:
        found.setdefault("preserve_recent_tokens", value["keep"]["tokens"])
    if "buffer" in value:
        found.setdefault("reserved", value["buffer"])
    return found

"""The JSON schema that editors use for settings files, made from the types.

A copy is kept beside this file as `holdfast.schema.json`; a test keeps both equal.
"""

from pathlib import Path
from typing import Any

import msgspec

from holdfast.config.layers.check import IGNORED
from holdfast.schema import config as types
from holdfast.schema.config import AgentConfig, Config, Settings

FILE = Path(__file__).with_name("holdfast.schema.json")


def schema() -> dict[str, Any]:
    """The schema of a settings file. Unknown keys are marked, since they are most often mistakes."""
    made = msgspec.json.schema(Config)
    defs = made["$defs"]
    for name, definition in defs.items():
        if _is_settings(name) and name != AgentConfig.__name__:
            definition["additionalProperties"] = False
    top = defs["Config"]["properties"]
    agents = top["agent"]
    top.update({key: {} for key in sorted(IGNORED - {"$schema"})})
    top |= {
        "$schema": {"type": "string"},
        "mode": {**agents, "deprecated": True},
        "tools": {"type": "object", "additionalProperties": {"type": "boolean"}, "deprecated": True},
        "autoshare": {"type": "boolean", "deprecated": True},
    }
    plain = _plain(made)
    assert isinstance(plain, dict)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Holdfast settings", **plain}


def encoded() -> bytes:
    """The same as the file has it."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2) + b"\n"


def _is_settings(name: str) -> bool:
    type_ = getattr(types, name, None)
    return isinstance(type_, type) and issubclass(type_, Settings)


def _plain(value: Any) -> Any:
    """Prices are numbers in files, whatever type holds them; null and defaults say nothing to an editor."""
    match value:
        case {"format": "decimal", "type": "string"}:
            return {"type": "number"}
        case {"anyOf": [*members]}:
            kept = [_plain(member) for member in members if member != {"type": "null"}]
            rest = {k: _plain(item) for k, item in value.items() if k not in ("anyOf", "default")}
            return {**rest, **(kept[0] if len(kept) == 1 else {"anyOf": kept})}
        case dict():
            return {
                key: _plain(item)
                for key, item in value.items()
                if not (key == "default" and not isinstance(item, dict))
                and not (key == "required" and item == [])
            }
        case list():
            return [_plain(item) for item in value]
        case _:
            return value

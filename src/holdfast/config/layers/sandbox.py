"""Settings of the box: a project may only tighten them, trusted or not; the user's own files loosen it."""

from pathlib import Path
from typing import Any, Final

from holdfast.config.layers.merge import Merged, Origin

KEY: Final = "sandbox"
_STRICTNESS: Final = ("off", "workspace", "read-only")
_DEFAULT: Final = "workspace"


def tightening(value: dict[str, Any], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The part of a project's entry that can tighten, and the names of the rest. A relative path to hide is
    taken from the folder of the file.
    """
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for key, item in value.items():
        match key, item:
            case "hide", list():
                kept[key] = [_rooted(path, folder) for path in item]
            case ("network", False) | ("require", True):
                kept[key] = item
            case "mode", str() if item != "off":
                kept[key] = item
            case _:
                left_out.append(f"{KEY}.{key}")
    return kept, left_out


def tighten(merged: Merged, wanted: dict[str, Any], origin: Origin) -> None:
    """Lay the tightening part of a project's entry over the user's own settings."""
    own = merged.value.get(KEY) or {}
    for key, item in wanted.items():
        at = (KEY, key)
        if key == "hide":
            held = own.get(key) or []
            merged.set(at, [*held, *(path for path in item if path not in held)], origin)
        elif key == "mode" and item in _STRICTNESS:
            if _STRICTNESS.index(item) > _STRICTNESS.index(own.get(key) or _DEFAULT):
                merged.set(at, item, origin)
        elif own.get(key) != item:
            merged.set(at, item, origin)


def _rooted(path: Any, folder: Path) -> Any:
    named = isinstance(path, str) and not path.startswith(("/", "~"))
    return str(folder / path) if named else path

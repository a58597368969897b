"""What happens to the settings after all layers are laid: flags, and older names that become newer ones."""

from typing import Any

from holdfast import flags
from holdfast.config.documents.document import Document
from holdfast.config.layers import check
from holdfast.config.layers.merge import Merged, Origin, ordered
from holdfast.config.places import Places
from holdfast.permission import from_config


def finish(merged: Merged, places: Places) -> None:
    """Apply the flags that stand for settings."""
    permission_flag(merged, places)
    _tools(merged)
    value = merged.value
    share = ("share",)
    if merged.value.pop("autoshare", False) and "share" not in value:
        merged.set(share, "auto", merged.origins[("autoshare",)])
    merged.origins.pop(("autoshare",), None)
    if flags.enabled(flags.AUTO_SHARE) and value.get("share") != "disabled":
        merged.set(share, "auto", _flag(flags.AUTO_SHARE))
    if flags.enabled(flags.DISABLE_AUTOCOMPACT):
        merged.set(("compaction", "auto"), False, _flag(flags.DISABLE_AUTOCOMPACT))  # noqa: FBT003
    if flags.enabled(flags.DISABLE_PRUNE):
        merged.set(("compaction", "prune"), False, _flag(flags.DISABLE_PRUNE))  # noqa: FBT003


def _flag(name: str) -> Origin:
    return Origin(flags.variable_of(name) or name)


def permission_flag(merged: Merged, places: Places) -> None:
    """Lay the permissions of the environment over those of files."""
    given = flags.json_map(flags.PERMISSION)
    if given is None:
        return
    value: dict[str, Any] = {"permission": given}
    source = flags.variable_of(flags.PERMISSION) or flags.PERMISSION
    check.check(Document(source, "", "given", places.directory, value), value)
    merged.lay(value, Origin(source))


def _tools(merged: Merged) -> None:
    """Older switches stand before explicit permissions, and so give way to them."""
    switches = merged.value.pop("tools", None)
    origins = {path[1]: merged.origins.pop(path) for path in [p for p in merged.origins if p[0] == "tools"]
               if len(path) > 1}  # fmt: skip
    if not switches:
        return
    older: Any = from_config.from_tools(switches)
    explicit = merged.value.get("permission")
    if isinstance(explicit, str):
        return
    if isinstance(explicit, list):
        merged.value["permission"] = [*ordered(older), *explicit]
        return
    named = {("edit" if key in from_config.EDITS else key): origin for key, origin in origins.items()}
    merged.value["permission"] = {**older, **(explicit or {})}
    for key in older:
        if key not in (explicit or {}) and key in named:
            merged.origins[("permission", key)] = named[key]

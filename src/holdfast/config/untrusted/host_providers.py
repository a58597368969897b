"""Providers whose address a host chose: what goes there is the host's business, so no secret of others does.

What must stay true: a host may send requests to itself, but the user's keys and headers stay away from the
address that it chose. The caller that makes requests puts its own token in (`Loaded.host_providers`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.config.documents.positions import KeyPath
from holdfast.config.layers import redact
from holdfast.config.layers.merge import Merged


def chosen(merged: Merged, hosts: Mapping[str, str]) -> dict[str, str]:
    """The host that chose a provider's address, by provider. `hosts`: by the source of their settings."""
    found = {}
    for id in merged.value.get("provider", {}):
        origin = merged.origins.get(("provider", id, "options", "baseURL"))
        if origin is not None and origin.source in hosts:
            found[id] = hosts[origin.source]
    return found


def withhold(merged: Merged, found: Mapping[str, str]) -> list[str]:
    """Take away other settings of such a provider that a host shall not see. A line for each provider."""
    lines = []
    for id, host in found.items():
        taken = list(_secret(merged.value["provider"][id], ("provider", id)))
        for path in taken:
            merged.drop(path)
        if taken:
            left_out = ", ".join(".".join(map(str, path)) for path in taken)
            lines.append(f"{host} chose the address of {id}, so these settings are left out: {left_out}")
    return lines


def _secret(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Where a key or a header may stand. The host itself has set none: it may not."""
    for key, item in value.items() if isinstance(value, dict) else ():
        below = (*path, key)
        if key == "headers" or (redact.named_secret(str(key)) and len(below) > 3 and below[-2] != "models"):
            yield below
        else:
            yield from _secret(item, below)

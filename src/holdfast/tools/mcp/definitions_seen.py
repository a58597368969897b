"""Which definitions of tools the user's servers had before: one that changes later is reported.

A server may describe a tool harmlessly when the user decides for it, and otherwise afterwards. Digests only,
in one small file; what cannot be read there counts as never seen.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from holdfast.errors import HoldfastError
from holdfast.person import directories, small_file
from holdfast.schema import typed
from holdfast.tools.mcp.listed_tool import ListedTool
from holdfast.tools.mcp.server import Server

SERVERS_MAX: Final = 500
_Seen = dict[str, dict[str, str]]


def our_file() -> Path:
    """Where they are."""
    return directories.state() / "mcp-definitions.json"


def changed(server: Server, listed: Sequence[ListedTool]) -> list[str]:
    """The tools whose definitions are not those that were first seen, by name. New servers are noted."""
    now = {each.name: _digest(each) for each in listed}
    before = _read().get(server.identity)
    if before is None:
        accept(server, listed)
        return []
    return [name for name, digest in now.items() if before.get(name) != digest]


def accept(server: Server, listed: Sequence[ListedTool]) -> None:
    """The definitions as they are now are those that count."""
    now = {each.name: _digest(each) for each in listed}

    def editor(data: bytes | None) -> bytes:
        seen = {name: tools for name, tools in _decoded(data).items() if name != server.identity}
        for name in list(seen)[: max(0, len(seen) - SERVERS_MAX + 1)]:
            del seen[name]
        return msgspec.json.encode({**seen, server.identity: now})

    small_file.edit(our_file(), editor)


def _read() -> _Seen:
    try:
        return _decoded(small_file.read(our_file()))
    except HoldfastError:
        return {}


def _decoded(data: bytes | None) -> _Seen:
    try:
        return {} if data is None else typed.decode(data, _Seen)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _digest(tool: ListedTool) -> str:
    return hashlib.sha256(msgspec.json.encode(tool, order="deterministic")).hexdigest()[:32]

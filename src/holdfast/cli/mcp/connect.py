"""Connects servers for a command, as a session in this directory would, until the command ends."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from holdfast.cli.output import note
from holdfast.errors import NotFound
from holdfast.location.box.boxes import Boxes
from holdfast.location.guard import Guard
from holdfast.sessions.mcp_servers import McpServers
from holdfast.tools.mcp.connections import Connections
from holdfast.tools.mcp.directory_servers import DirectoryServers
from holdfast.tools.mcp.server import Server
from holdfast.tools.registry import Registry
from holdfast.workspace.plugins import WorkspacePlugins
from holdfast.workspace.workspace import Workspace


@asynccontextmanager
async def connected(workspace: Workspace, servers: Mapping[str, Server]) -> AsyncIterator[DirectoryServers]:
    """The servers, each connected or known to have failed."""
    guard, boxes = Guard(), Boxes()
    connections = Connections(lambda *_: None, note)
    below, directory = Registry(), str(workspace.places.directory)
    made = McpServers(
        connections,
        lambda _: below,
        WorkspacePlugins(note).of,
        guard=guard,
        boxes=boxes,
        stored_at=None,
    )
    try:
        await connections.connect(directory, servers, below, lambda: made.world(workspace))
        here = connections.at(directory)
        yield DirectoryServers(below, lambda *_: None, note) if here is None else here
    finally:
        await connections.close()
        guard.close()
        await boxes.close()


def named(servers: Mapping[str, Server], name: str) -> Server:
    """One of them; `NotFound` names those that there are."""
    found = servers.get(name)
    if found is None:
        known = ", ".join(servers) or "none"
        raise NotFound(f"there is no MCP server {name} here; there are: {known}")
    return found

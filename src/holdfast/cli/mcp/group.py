"""`holdfast mcp …`."""

import click

from holdfast.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    table={
        "list": ("holdfast.cli.mcp.list:list_", "The servers, how they are, and the tools that they offer."),
        "add": ("holdfast.cli.mcp.add:add", "Put a server into your settings."),
        "remove": ("holdfast.cli.mcp.remove:remove", "Take a server out of your settings."),
        "auth": ("holdfast.cli.mcp.auth:auth", "Sign in to a remote server with your browser."),
        "logout": ("holdfast.cli.mcp.logout:logout", "Forget the sign-in to a server."),
        "debug": ("holdfast.cli.mcp.debug:debug", "Connect to one server, and show what it says."),
    },
)
def mcp() -> None:
    """The MCP servers whose tools agents may call."""

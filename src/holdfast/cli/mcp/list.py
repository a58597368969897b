"""`holdfast mcp list`: the servers of this directory, how they are, and what they offer.

They are connected as for a session. Those of a project that is not trusted are shown and not started.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.config.current import here
from holdfast.cli.output import clean, format_option, note, print_json, print_table
from holdfast.cli.paged import paged
from holdfast.config.layers import redact
from holdfast.config.loaded import Loaded
from holdfast.schema.wire import JsonMap
from holdfast.text import one_line
from holdfast.tools.mcp.server import Server, configured
from holdfast.workspace.workspace import Workspace

if TYPE_CHECKING:  # A list without servers is a plain read.
    from holdfast.tools.mcp.keeper import Keeper
    from holdfast.tools.mcp.listed_tool import OfferedTool

UNTRUSTED = "not trusted"
_WIDE = 100


@click.command("list")
@click.option("--tools", "with_tools", is_flag=True, help="Also the tools of each, with their descriptions.")
@format_option
@click.pass_context
@paged
def list_(ctx: click.Context, *, with_tools: bool, form: str) -> None:
    """The servers of this directory, how they are, and the tools that they offer."""
    workspace = here(ctx).workspace
    loaded = workspace.loaded
    servers = configured(loaded.config)
    rows = _found(workspace, servers) if servers else []
    rows += [_untrusted(name, words) for name, words in loaded.untrusted_servers.items()]
    if form == "json":
        print_json(rows)
        return
    if not rows:
        note("No MCP server is configured; `holdfast mcp add` puts one into your settings.")
        return
    print_table(
        ["SERVER", "STATE", "TOOLS", "RUNS", "SET IN"],
        [[row["name"], row["state"], _count(row), row["address"], row["origin"] or ""] for row in rows],
        stretch=3,
    )
    _remark(rows, loaded)
    if with_tools:
        tools = [tool for row in rows for tool in row["tools"]]
        lines = [[tool["name"], one_line(tool["description"], _WIDE)] for tool in tools]
        print_table(["TOOL", "DESCRIPTION"], lines, stretch=1)


def _found(workspace: Workspace, servers: dict[str, Server]) -> list[JsonMap]:
    import anyio

    from holdfast.cli.mcp.connect import connected

    async def look() -> list[JsonMap]:
        async with connected(workspace, servers) as here:
            return [
                _row(keeper, workspace.loaded, here.offered(name)) for name, keeper in here.keepers.items()
            ]

    return anyio.run(look)


def _row(keeper: "Keeper", loaded: Loaded, tools: "Sequence[OfferedTool]") -> JsonMap:
    from holdfast.tools.mcp import definitions_seen

    server = keeper.server
    return {
        "name": server.name,
        "type": server.entry.type,
        "state": keeper.status.status,
        "error": keeper.status.error,
        "address": address(server, loaded),
        "origin": _origin(loaded, server.name),
        "tools": [
            {"name": tool.name, "description": tool.description, "readOnly": tool.read_only} for tool in tools
        ],
        "changed": definitions_seen.changed(server, keeper.listed) if keeper.listed else [],
    }


def address(server: Server, loaded: Loaded) -> str:
    """The command or address of a server, without secrets."""
    entry = redact.redacted(loaded.value, loaded.origins)["mcp"][server.name]
    return clean(entry.get("url") or " ".join(entry.get("command", ())))


def _untrusted(name: str, words: list[str]) -> JsonMap:
    return {
        "name": name,
        "type": None,
        "state": UNTRUSTED,
        "error": None,
        "address": clean(" ".join(redact.redacted({"command": words}, {})["command"])),
        "origin": None,
        "tools": [],
        "changed": [],
    }


def _origin(loaded: Loaded, name: str) -> str | None:
    found = next((origin for path, origin in loaded.origins.items() if path[:2] == ("mcp", name)), None)
    return None if found is None else str(found)


def _count(row: JsonMap) -> str:
    return "" if row["state"] in (UNTRUSTED, "disabled") else str(len(row["tools"]))


def _remark(rows: list[JsonMap], loaded: Loaded) -> None:
    """What does not fit into the table."""
    for row in rows:
        if row["error"]:
            note(f"{row['name']}: {row['error']}")
        if row["changed"]:
            changed = ", ".join(row["changed"][:10])
            note(
                f"{row['name']} has other definitions than before: {changed}; `holdfast mcp debug "
                f"{row['name']}` shows them, and `--accept` takes them as known"
            )
    if loaded.untrusted_servers:
        note(f"Not started: `holdfast trust {loaded.untrusted}` lets the project's servers run.")

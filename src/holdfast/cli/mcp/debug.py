"""`holdfast mcp debug`: connects to one server and shows everything that it says of itself."""

import click
import msgspec

from holdfast.cli.config.current import here
from holdfast.cli.mcp.connect import connected, named
from holdfast.cli.mcp.list import address
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.schema.wire import JsonMap
from holdfast.tools.mcp import accounts, definitions_seen
from holdfast.tools.mcp.server import Server, configured
from holdfast.workspace.workspace import Workspace


@click.command()
@click.argument("name")
@click.option("--accept", is_flag=True, help="Take the definitions of its tools as known from now on.")
@format_option
@click.pass_context
def debug(ctx: click.Context, name: str, *, accept: bool, form: str) -> None:
    """Connect to one server, and show what it says: its tools with their arguments, or why it failed.

    The exit code is 1 for a server that cannot be used.
    """
    import anyio

    workspace = here(ctx).workspace
    server = named(configured(workspace.loaded.config), name)
    found = anyio.run(_look, workspace, server, accept)
    if form == "json":
        print_json(found)
    else:
        _print(found)
    if accept and found["changed"]:
        note(f"The definitions of {name} are taken as known.")
    if found["state"] not in ("connected", "disabled"):
        ctx.exit(1)


def _print(found: JsonMap) -> None:
    for key in ("name", "state", "error", "runs", "version", "signedIn"):
        if found[key] is not None:
            click.echo(f"{key}: {found[key]}")
    if found["errors"]:
        click.echo("it printed:")
        for line in found["errors"]:
            click.echo(f"  {line}")
    for tool in found["tools"]:
        mark = " (changed)" if tool["tool"] in found["changed"] else ""
        schema = msgspec.json.encode(tool["schema"]).decode()
        click.echo(f"\n{tool['name']}{mark}\n  {tool['description']}\n  {clean(schema)}")


async def _look(workspace: Workspace, server: Server, accept: bool) -> JsonMap:  # noqa: FBT001
    async with connected(workspace, {server.name: server}) as here:
        keeper = here.keepers[server.name]
        changed = definitions_seen.changed(server, keeper.listed) if keeper.listed else []
        if accept and keeper.listed:  # Those of a server that is away are not known.
            definitions_seen.accept(server, keeper.listed)
        return {
            "name": server.name,
            "state": keeper.status.status,
            "error": keeper.status.error,
            "runs": address(server, workspace.loaded),
            "version": keeper.version,
            "signedIn": None if server.entry.type == "local" else accounts.find(server) is not None,
            "errors": keeper.printed(),
            "changed": changed,
            "tools": [
                {
                    "name": each.name,
                    "tool": each.tool,
                    "description": each.description,
                    "schema": each.schema,
                    "readOnly": each.read_only,
                }
                for each in here.offered(server.name)
            ],
        }

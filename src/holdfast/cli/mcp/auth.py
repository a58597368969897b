"""`holdfast mcp auth`: signs the user in to a remote server, with their browser."""

import click

from holdfast.cli.config.current import here
from holdfast.cli.mcp.connect import named
from holdfast.cli.output import format_option, note, print_json
from holdfast.errors import InvalidInput
from holdfast.tools.mcp.server import Server, configured


@click.command()
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Only print the address; open it yourself.")
@format_option
@click.pass_context
def auth(ctx: click.Context, name: str, *, no_browser: bool, form: str) -> None:
    """Sign in to a remote server with your browser; the answer comes to a port of this machine."""
    import anyio

    server = named(configured(here(ctx).workspace.loaded.config), name)
    if server.entry.type != "remote":
        raise InvalidInput(f"{name} is a program of this machine; only remote servers are signed in to")
    if server.entry.oauth is False:
        raise InvalidInput(f"`oauth` is off for {name} in the settings")
    file = anyio.run(_sign_in, server, not no_browser)
    if form == "json":
        print_json({"name": name, "file": file})
    else:
        note(f"You are signed in to {name}; the token is in {file}.")


async def _sign_in(server: Server, opens: bool) -> str:  # noqa: FBT001 - `anyio.run` passes no names
    import anyio.to_thread

    from holdfast.clock import SystemClock
    from holdfast.tools.mcp import accounts
    from holdfast.tools.mcp.wire.sign_in import sign_in

    async def show(url: str) -> None:
        note(f"Open this address to sign in to {server.name}:")
        note(url)
        if opens:
            import webbrowser

            await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)

    account = await sign_in(server, show, SystemClock())
    accounts.save(server.name, account)
    return str(accounts.our_file())

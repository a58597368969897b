"""`holdfast mcp remove`: takes a server out of the user's own settings, and forgets the sign-in to it."""

import click

from holdfast.cli.output import format_option, note, print_json
from holdfast.errors import NotFound


@click.command()
@click.argument("name")
@format_option
def remove(name: str, *, form: str) -> None:
    """Take a server out of your settings, and forget the sign-in to it."""
    from holdfast.config import own_file
    from holdfast.tools.mcp import accounts

    file = own_file.remove(("mcp", name))
    if file is None:
        raise NotFound(
            f"{own_file.path()} has no MCP server {name}; `holdfast mcp list` says where each is set"
        )
    accounts.forget(name)
    if form == "json":
        print_json({"name": name, "file": str(file)})
    else:
        note(f"{name} is no longer in {file}.")

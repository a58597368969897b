"""`holdfast mcp logout`: forgets the sign-in to a server."""

import click

from holdfast.cli.output import format_option, note, print_json


@click.command()
@click.argument("name")
@format_option
def logout(name: str, *, form: str) -> None:
    """Forget the sign-in to a server. The server itself may keep its token until that ends."""
    from holdfast.tools.mcp import accounts

    was = accounts.forget(name)
    if form == "json":
        print_json({"name": name, "forgotten": was})
    else:
        note(f"The sign-in to {name} is forgotten." if was else f"There is no sign-in to {name}.")

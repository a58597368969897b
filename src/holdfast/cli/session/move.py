"""`holdfast session move`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import clean, format_option, print_raw
from holdfast.cli.session_name import session_argument
from holdfast.cli.terminal import current_directory
from holdfast.schema.session import Session
from holdfast.schema.wire import encode

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.argument("directory", metavar="[DIR]", required=False)
@format_option
@click.pass_context
def move(ctx: click.Context, *, name: str, directory: str | None, form: str) -> None:
    """Let a session work in DIR, or in the current directory.

    The model is told where it works from the next prompt on; the history stays as it is.
    """

    async def work(hf: "Holdfast") -> Session:
        session = await hf.sessions.named(name)
        return await hf.sessions.move(session.id, directory or str(current_directory()))

    moved = with_holdfast(ctx, work)
    if form == "json":
        print_raw(encode(moved))
    else:
        click.echo(f"{moved.id} works in {clean(moved.directory)} now.")

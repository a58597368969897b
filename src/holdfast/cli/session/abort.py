"""`holdfast session abort`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import format_option, note, print_json
from holdfast.cli.session_name import named, session_argument

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@format_option
@click.pass_context
def abort(ctx: click.Context, *, name: str, form: str) -> None:
    """Interrupt a session, whichever process of this machine runs it."""
    with reading(ctx) as store:
        session = named(store, name).id

    async def work(hf: "Holdfast") -> bool:
        return await hf.sessions.interrupt(session)

    stopped = with_holdfast(ctx, work)
    if form == "json":
        print_json({"session": session, "interrupted": stopped})
        return
    note(f"{session} was interrupted." if stopped else f"{session} does nothing at the moment.")

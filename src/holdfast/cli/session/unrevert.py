"""`holdfast session unrevert`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.complaint import CONFLICT
from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import format_option
from holdfast.cli.session.undone import print_undo
from holdfast.cli.session_name import named, session_argument

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.sessions.undo.result import Undo


@click.command()
@session_argument
@click.option(
    "--committed",
    is_flag=True,
    help="The files of the last revert that a prompt has committed, up to 7 days ago; its messages are gone.",
)
@click.option("--preview", is_flag=True, help="Only show what would become of each file.")
@format_option
@click.pass_context
def unrevert(ctx: click.Context, *, name: str, committed: bool, preview: bool, form: str) -> None:
    """Undo a revert: its files and messages come back.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 4 in conflict with your changes: nothing was changed.
    """
    with reading(ctx) as store:
        session = named(store, name).id

    async def work(hf: "Holdfast") -> "Undo":
        return await hf.sessions.unrevert(session, committed=committed, preview=preview)

    undo = with_holdfast(ctx, work)
    print_undo(undo, form)
    ctx.exit(CONFLICT if undo.conflicts else 0)

"""`holdfast session revert`."""

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.complaint import CONFLICT
from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import format_option, note
from holdfast.cli.session.undone import print_files, print_undo
from holdfast.cli.session_name import named, session_argument

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.sessions.undo.result import Undo


@click.command()
@session_argument
@click.argument("message", required=False)
@click.option("--part", help="Only from this part of MESSAGE on.")
@click.option("--snapshot", help="Put the files back as in this tree.")
@click.option("--preview", is_flag=True, help="Only show what would become of each file.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@format_option
@click.pass_context
def revert(
    ctx: click.Context,
    *,
    name: str,
    message: str | None,
    part: str | None,
    snapshot: str | None,
    preview: bool,
    yes: bool,
    form: str,
) -> None:
    """Take back everything from MESSAGE on, else from the last prompt on: files now, messages with the next
    prompt.

    Only files that the agent has changed since are touched; what you changed in them stays. `unrevert` brings
    everything back. Exit codes: 0 done, 1 failed, 2 wrong usage, 4 in conflict with your changes: nothing was
    changed.
    """
    with reading(ctx) as store:
        session = named(store, name).id
    asks = not yes and not preview
    if asks and not sys.stdin.isatty():
        raise click.UsageError(
            f"reverting {session} asks first, and this is no terminal; give --yes or --preview"
        )

    async def look(hf: "Holdfast") -> "Undo":
        return await hf.sessions.revert(session, message, part=part, snapshot=snapshot, preview=True)

    async def work(hf: "Holdfast") -> "Undo":
        return await hf.sessions.revert(session, message, part=part, snapshot=snapshot)

    if preview:
        seen = with_holdfast(ctx, look)
        print_undo(seen, form)
        ctx.exit(CONFLICT if seen.conflicts else 0)
    if asks:
        seen = with_holdfast(ctx, look)
        print_files(seen, beside=True)
        if seen.conflicts:
            ctx.exit(CONFLICT)
        if not click.confirm(f"Revert {session}?", err=True):
            note("Nothing was changed.")
            ctx.exit(1)
    print_undo(with_holdfast(ctx, work), form)

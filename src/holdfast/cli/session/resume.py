"""`holdfast session resume`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.config.current import log_level_here
from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import note
from holdfast.cli.run.follow import follow
from holdfast.cli.run.interrupts import Interrupts
from holdfast.cli.session_name import named, session_argument
from holdfast.log import setup

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["default", "json"]),
    default="default",
    show_default=True,
    help="For people, or one event a line.",
)
@click.pass_context
def resume(ctx: click.Context, *, name: str, form: str) -> None:
    """Go on with a session that was left unfinished, and show what is new.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something was denied, 130 interrupted.
    """
    with reading(ctx) as store:
        record = named(store, name)
    session = record.id
    level = log_level_here(ctx)

    async def work(hf: "Holdfast") -> int:
        setup.heed(level)
        idle = f"{session} has nothing left to do. `holdfast run --session {session} …` sends it a prompt."
        return await follow(hf, session, lambda: hf.sessions.resume(session), form, Interrupts(), idle=idle)

    if record.busy:
        note(f"Another process runs {session}; this shows what it does.")
    elif form == "default":
        note(f"Going on with {session}.")
    ctx.exit(with_holdfast(ctx, work))

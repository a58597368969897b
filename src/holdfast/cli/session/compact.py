"""`holdfast session compact`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.config.current import log_level_here
from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import format_option, note, print_json
from holdfast.cli.run.follow import DONE, follow
from holdfast.cli.run.interrupts import Interrupts
from holdfast.cli.session_name import named, session_argument
from holdfast.log import setup

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.option("--force", is_flag=True, help="Also when the session is under every threshold.")
@format_option
@click.pass_context
def compact(ctx: click.Context, *, name: str, force: bool, form: str) -> None:
    """Have a summary take the place of a session's beginning, in the model's view.

    The transcript stays whole. Exit codes: 0 done or not needed, 1 failed, 2 wrong usage, 130 interrupted.
    """
    with reading(ctx) as store:
        session = named(store, name).id
    level = log_level_here(ctx)
    answers: list[str] = []

    async def work(hf: "Holdfast") -> int:
        setup.heed(level)

        async def begin() -> None:
            answers.append(await hf.sessions.compact(session, force=force))

        shown = "default" if form == "table" else "quiet"
        return await follow(hf, session, begin, shown, Interrupts())

    code = with_holdfast(ctx, work)
    is_needed = answers != ["not needed"]
    if form == "json":
        if code == DONE:
            print_json({"session": session, "compacted": is_needed})
    elif not is_needed:
        note(f"{session} is under every threshold; `--force` compacts it all the same.")
    ctx.exit(code)

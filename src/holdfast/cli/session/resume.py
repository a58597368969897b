"""`holdfast session resume`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.naming import session_argument
from holdfast.cli.opening import with_holdfast
from holdfast.cli.running.following import follow

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.option(
    "--format", "form", type=click.Choice(["default", "json"]), default="default", show_default=True
)
@click.pass_context
def resume(ctx: click.Context, *, name: str, form: str) -> None:
    """Go on with a session that was left unfinished, and show what comes of it."""

    async def work(hf: "Holdfast") -> int:
        session = (await hf.sessions.named(name)).id
        return await follow(hf, session, lambda: hf.sessions.resume(session), form)

    ctx.exit(with_holdfast(ctx, work))

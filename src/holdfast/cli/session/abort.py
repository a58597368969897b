"""`holdfast session abort`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.naming import session_argument
from holdfast.cli.opening import with_holdfast
from holdfast.cli.output import note

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.pass_context
def abort(ctx: click.Context, *, name: str) -> None:
    """Interrupt a session, whichever process of this machine runs it."""

    async def work(hf: "Holdfast") -> str | None:
        record = await hf.sessions.named(name)
        if not record.busy:
            return None
        await hf.sessions.interrupt(record.id)
        return record.id

    stopped = with_holdfast(ctx, work)
    note(f"{name} does nothing at the moment." if stopped is None else f"{stopped} was interrupted.")

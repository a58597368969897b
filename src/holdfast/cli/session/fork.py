"""`holdfast session fork`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import clean, format_option, print_raw
from holdfast.cli.session_name import session_argument
from holdfast.schema.session import Session
from holdfast.schema.wire import encode

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.option(
    "--message", metavar="ID", help="Cut before this message; without it the whole history is taken."
)
@format_option
@click.pass_context
def fork(ctx: click.Context, *, name: str, message: str | None, form: str) -> None:
    """Make a new session with the history of another."""

    async def work(hf: "Holdfast") -> Session:
        return await hf.sessions.fork((await hf.sessions.named(name)).id, message)

    answer(with_holdfast(ctx, work), form, "Forked into")


def answer(session: Session, form: str, done: str) -> None:
    """Print what became of a session."""
    if form == "json":
        print_raw(encode(session))
    else:
        click.echo(f"{done} {session.id}  {clean(session.title)}")

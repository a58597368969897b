"""`holdfast session rename`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import format_option
from holdfast.cli.session.fork import answer
from holdfast.cli.session_name import session_argument
from holdfast.schema.session import Session

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.argument("title")
@format_option
@click.pass_context
def rename(ctx: click.Context, *, name: str, title: str, form: str) -> None:
    """Give a session another title. Its id and slug stay."""
    words = title.strip()
    if not words:
        raise click.UsageError("a title has at least one sign that can be seen")

    async def work(hf: "Holdfast") -> Session:
        return await hf.sessions.rename((await hf.sessions.named(name)).id, words)

    answer(with_holdfast(ctx, work), form, "Renamed")

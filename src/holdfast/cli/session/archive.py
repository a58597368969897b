"""`holdfast session archive` and its undoing."""

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
@format_option
@click.pass_context
def archive(ctx: click.Context, *, name: str, form: str) -> None:
    """Hide a session from lists; nothing of it is lost."""

    async def work(hf: "Holdfast") -> Session:
        return await hf.sessions.archive((await hf.sessions.named(name)).id)

    answer(with_holdfast(ctx, work), form, "Archived")


@click.command()
@session_argument
@format_option
@click.pass_context
def restore(ctx: click.Context, *, name: str, form: str) -> None:
    """Show an archived session, or that of an agent run, in lists again."""

    async def work(hf: "Holdfast") -> Session:
        return await hf.sessions.restore((await hf.sessions.named(name)).id)

    answer(with_holdfast(ctx, work), form, "Restored")

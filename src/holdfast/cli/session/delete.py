"""`holdfast session delete`."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.cli.readable import readable
from holdfast.cli.session_name import named, session_argument
from holdfast.store.record import SessionPage

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@format_option
@click.pass_context
def delete(ctx: click.Context, *, name: str, yes: bool, form: str) -> None:
    """Erase a session, its children and all they hold. This cannot be undone."""
    with reading(ctx) as store:
        record = named(store, name)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"deleting {record.id} asks first, and this is no terminal; give --yes")
        # A session that cannot be read is named, and can be erased.
        titles = "".join(f" ({clean(line.title)})" for _, line in readable(SessionPage((record,))))
        if not click.confirm(f"Erase {record.id}{titles} and its children for ever?"):
            note("Nothing was erased.")
            ctx.exit(1)

    async def work(hf: "Holdfast") -> Sequence[str]:
        return await hf.sessions.remove(record.id)

    erased = with_holdfast(ctx, work)
    if form == "json":
        print_json(list(erased))
    else:
        click.echo(f"Erased {', '.join(erased)}")

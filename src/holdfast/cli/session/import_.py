"""`holdfast session import`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.import_report import print_report
from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import format_option
from holdfast.cli.terminal import current_directory

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.store.exchange.portable.report import ImportReport


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--here", is_flag=True, help="Let the sessions live in the current directory.")
@click.option("--as-new", is_flag=True, help="Under new ids, beside what is here.")
@format_option
@click.pass_context
def import_(ctx: click.Context, *, file: str, here: bool, as_new: bool, form: str) -> None:
    """Read sessions from a file that `session export` or `opencode export` wrote; - is standard input.

    All or nothing. Of our own files, what is here already and equal stays; what is here and different is an
    error. Of OpenCode's, what is missing is added, and what is here stays, also where it differs: that is
    counted. A new session of its file whose directory is not on this machine comes to the current one.
    """

    async def work(hf: "Holdfast") -> "ImportReport":
        from holdfast.sessions.create import locate_directory
        from holdfast.store.exchange.portable.import_file import Into, import_portable

        place = await locate_directory(hf.sessions.access, current_directory())
        placed = Into(place.project, place.directory, place.path, hf.host.id)
        return await import_portable(
            hf.store,
            sys.stdin.buffer.read() if file == "-" else Path(file),
            mint=hf.mint,
            into=placed if here else Into(placement=hf.host.id),
            into_homeless=placed,
            as_new=as_new,
        )

    print_report(with_holdfast(ctx, work, create=True), form)

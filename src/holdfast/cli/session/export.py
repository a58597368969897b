"""`holdfast session export`."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import end_signals
from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.cli.session.export_all import export_all
from holdfast.cli.session.whole_file import prepared_folder, write_whole
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@click.argument("name", metavar="[SESSION]", required=False)
@click.option("-o", "--output", metavar="FILE", default="-", help="Where to write; - is standard output.")
@click.option("--all", "folder", metavar="FOLDER", help="Every session, with those below it a file each.")
@click.option("--descendants", is_flag=True, help="With the sessions below it.")
@click.option("--opencode", is_flag=True, help="In the format that `opencode import` reads.")
@click.option("--sanitize", is_flag=True, help="With --opencode: without texts, paths and contents.")
@format_option
@click.pass_context
def export(
    ctx: click.Context,
    *,
    name: str | None,
    output: str,
    folder: str | None,
    descendants: bool,
    opencode: bool,
    sanitize: bool,
    form: str,
) -> None:
    """Write a session to one JSON file, which `holdfast session import` reads.

    It holds everything that was said, secrets included: look before you share it. A record that cannot be
    read is left out and named, and the exit code is 1. The file is JSON whatever --format says; with
    --output or --all, --format json answers what was written.
    """
    end_signals.listen()
    if sanitize and not opencode:
        raise click.UsageError("--sanitize goes with --opencode")
    if descendants and opencode:
        raise click.UsageError("OpenCode's format holds one session; leave --descendants out")
    if (name is None) == (folder is None):
        raise click.UsageError("name a session, or give --all FOLDER")
    if folder is not None and (output != "-" or opencode or descendants):
        raise click.UsageError("--all writes portable files into its folder; leave the other options out")
    if output != "-" and Path(output).exists():
        raise InvalidInput(f"{output} exists already; name another file")

    written: dict[str, object] = {}
    damaged = False

    async def work(hf: "Holdfast") -> list[str]:
        from holdfast.store.exchange.portable.content import Losses
        from holdfast.store.exchange.portable.export import export_session
        from holdfast.store.exchange.portable.opencode_file import export_opencode

        losses = Losses()
        assert name is not None, "checked above"
        session = (await hf.sessions.named(name)).id
        if opencode:
            pieces = export_opencode(hf.store, session, sanitize=sanitize, losses=losses)
        else:
            pieces = export_session(hf.store, session, descendants=descendants, losses=losses)
        if output == "-":
            await _print(pieces)
        else:
            written["file"], written["bytes"] = output, await write_whole(pieces, Path(output))
        return losses.names

    if folder is not None:
        with prepared_folder(Path(folder)):
            done = export_all(ctx, Path(folder))
        written |= {"folder": folder, "files": done.files}
        missing, damaged = done.missing, done.damaged
    else:
        missing = with_holdfast(ctx, work)
    if form == "json" and written:
        print_json({**written, "missing": missing})
    elif folder is not None:
        note(f"Wrote {written['files']} files to {folder}.")
    elif written:
        note(f"Wrote {written['bytes']} bytes to {output}.")
    for each in missing:
        note(f"{clean(each)} cannot be read and was left out; run holdfast doctor")
    if missing or damaged:
        ctx.exit(1)


async def _print(pieces: AsyncIterator[bytes]) -> None:
    async for piece in pieces:
        sys.stdout.buffer.write(piece)

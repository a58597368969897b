"""`holdfast session export`."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from holdfast.cli.open_store import place_of, with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.cli.session.whole_file import prepare_folder, write_whole
from holdfast.errors import InvalidInput, RecordCorrupt, StoreDamaged

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.store.exchange.portable.content import Losses


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
    if folder is not None:
        prepare_folder(Path(folder))

    written: dict[str, object] = {}
    sqlite = place_of(ctx).engine == "sqlite"

    async def work(hf: "Holdfast") -> list[str]:
        from holdfast.store.exchange.portable.content import Losses
        from holdfast.store.exchange.portable.export import export_session
        from holdfast.store.exchange.portable.opencode_file import export_opencode

        losses = Losses()
        if folder is not None:
            written["folder"], written["files"] = (
                folder,
                await _export_all(hf, Path(folder), losses, sqlite=sqlite),
            )
            return losses.names
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

    damaged = False
    try:
        missing = with_holdfast(ctx, work)
    except StoreDamaged as error:
        if folder is None or written or not sqlite:
            raise
        damaged = True
        note(
            f"{clean(error.path)} is damaged ({clean(error.what)}), so what can be salvaged is exported; "
            "doctor --salvage NEW makes a store of it"
        )
        missing = _salvaged(ctx, Path(folder), work)
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


def _salvaged(
    ctx: click.Context, folder: Path, work: "Callable[[Holdfast], Coroutine[Any, Any, list[str]]]"
) -> list[str]:
    """Do the work with a salvage of the damaged store, and throw that away; what is missing.

    It lies in the folder, on a disk that has room for as much, where nobody else may read it.
    """
    from holdfast.cli.damaged_store import path_of
    from holdfast.clock import SystemClock
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.salvage.rescue import salvage

    path = path_of(place_of(ctx), "--all")
    with TemporaryDirectory(prefix=".salvage-", dir=folder.absolute()) as private:
        store = Path(private) / "store.db"
        report = salvage(Database(path), store, SystemClock())
        missing = with_holdfast(ctx, work, url=f"sqlite://{quote(os.fsencode(store))}")
    if report.doubtful:
        note(f"not certain to be complete: {', '.join(report.doubtful)}")
    lost = [f"{name} of {each.id}" for each in report.incomplete for name in each.lost]
    return [*report.lost, *lost, *missing]


async def _export_all(hf: "Holdfast", folder: Path, losses: "Losses", *, sqlite: bool) -> int:
    """A file for each tree of sessions, under the id of its root; one that fails does not stop the others."""
    from holdfast.store.exchange.portable.content import trees
    from holdfast.store.exchange.portable.export import export_session

    count, damaged = 0, False
    for root in await trees(hf.store):
        try:
            pieces = export_session(hf.store, root, descendants=True, losses=losses)
            await write_whole(pieces, folder / f"{root}.json")
            count += 1
        except RecordCorrupt as error:
            losses.note(error)
        except StoreDamaged:
            if not sqlite:  # An index that is derived: it is made again, and then nothing is missing.
                raise
            losses.names.append(f"session {root}")
            damaged = True
    if damaged:
        note("the file itself is damaged; doctor --salvage NEW brings what can be read of the others")
    return count


async def _print(pieces: AsyncIterator[bytes]) -> None:
    async for piece in pieces:
        sys.stdout.buffer.write(piece)

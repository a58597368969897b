"""Exports every session into a folder, a file a tree; what a damaged file hides comes from a salvage."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from holdfast.cli.open_store import place_of, with_holdfast
from holdfast.cli.output import clean, note
from holdfast.cli.session.whole_file import SALVAGED, write_whole
from holdfast.errors import RecordCorrupt, StoreDamaged

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.store.sqlite.salvage.report import SalvageReport


class Exported:
    """What was written and what was not."""

    def __init__(self) -> None:
        self.files = 0
        self.sessions: set[str] = set()
        """Those that are dealt with: written, or named as missing."""
        self.missing: list[str] = []
        self.damaged = False
        """Whether the file of the store is damaged: then something may be missing that nobody knows of."""


def export_all(ctx: click.Context, folder: Path) -> Exported:
    """Write the files; the sessions that lie on a damaged page of a SQLite store come last, salvaged."""
    done = Exported()
    try:
        with_holdfast(ctx, lambda hf: _export_trees(hf, folder, done))
    except StoreDamaged as error:
        if place_of(ctx).engine != "sqlite":
            raise
        done.damaged = True
        note(
            f"{clean(error.path)} is damaged ({clean(error.what)}): what cannot be read from it is salvaged; "
            "doctor --salvage NEW makes a whole store of that"
        )
        report = _export_salvaged(ctx, folder, done)
        for gap in report.gaps:
            note(gap)
        if report.doubtful:
            note(f"not certain to be complete: {', '.join(report.doubtful)}")
    return done


async def _export_trees(hf: "Holdfast", folder: Path, done: Exported) -> None:
    """A file for each tree of sessions, under the id of its root; one that fails does not stop the others.

    `StoreDamaged` when all have been tried, if a page of one is damaged.
    """
    from holdfast.store.exchange.portable.content import Losses, family, trees
    from holdfast.store.exchange.portable.export import export_session

    damaged: StoreDamaged | None = None
    for root in await trees(hf.store):
        if root in done.sessions:
            continue
        losses, ids = Losses(), [root]
        try:
            found = await family(hf.store, root)
            pieces = export_session(hf.store, root, descendants=True, losses=losses)
            await write_whole(pieces, folder / f"{root}.json")
            done.files, ids = done.files + 1, found
        except RecordCorrupt as error:
            losses.note(error)
        except StoreDamaged as error:
            damaged = error
            continue
        done.sessions.update(ids)
        done.missing += losses.names
    if damaged is not None:
        raise damaged


def _export_salvaged(ctx: click.Context, folder: Path, done: Exported) -> "SalvageReport":
    """Export what is left from a salvage of the store, which is thrown away afterwards.

    It lies in the folder, on a disk that has room for as much, where nobody else may read it.
    """
    from holdfast.cli.damaged_store import path_of, salvaged

    with TemporaryDirectory(prefix=SALVAGED, dir=folder.absolute()) as private:
        store = Path(private) / "store.db"
        report = salvaged(path_of(place_of(ctx), "--all"), store)
        lost = [each for each in report.incomplete if each.id not in done.sessions]
        done.missing += report.lost
        done.missing += [f"{name} of {each.id}" for each in lost for name in each.lost]
        url = f"sqlite://{quote(os.fsencode(store))}"
        with_holdfast(ctx, lambda hf: _export_trees(hf, folder, done), url=url)
    return report

"""Salvages a store: a damaged file in, a new store and a report out. The damaged file is only read."""

from pathlib import Path

from holdfast.clock import Clock
from holdfast.errors import StoreError
from holdfast.schema.ids import Mint
from holdfast.store.base import Failpoint, no_failpoint
from holdfast.store.sqlite.backup import check_free
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.draft import draft_beside
from holdfast.store.sqlite.salvage.choose import Choice, Chooser
from holdfast.store.sqlite.salvage.harvest import Harvest, harvest
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.sqlite.salvage.raw_file import Kept
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.source import Source, read
from holdfast.store.sqlite.salvage.write import default_roots, name_store, write_store


def salvage(
    database: Database, target: Path, clock: Clock, *, failpoint: Failpoint = no_failpoint
) -> SalvageReport:
    """Write everything that can be read of a store into a new one; never over a file."""
    check_free(target)
    if not target.absolute().parent.is_dir():
        raise StoreError(f"{target.parent} is no folder; make it, or name another")
    with draft_beside(target) as draft:

        def write(source: Source) -> SalvageReport:
            found, choice = _chosen(source.pages, clock)
            write_store(draft, target, choice, found, source.pages, now_ms=clock.now_ms())
            return choice.report

        report = read(database, write, failpoint)
        name_store(draft, target)
        return report


def survey(
    database: Database, clock: Clock, *, failpoint: Failpoint = no_failpoint, kept: Kept | None = None
) -> SalvageReport:
    """What a salvage would bring; nothing is written. `kept`: see `source.read`."""
    return read(database, lambda source: _chosen(source.pages, clock)[1].report, failpoint, kept)


def _chosen(pages: Pages, clock: Clock) -> tuple[Harvest, Choice]:
    mint = Mint(clock)
    found = harvest(pages, default_roots())
    choice = Chooser(pages, found, now_ms=clock.now_ms(), mint=lambda: mint.descending("ses")).run()
    return found, choice

"""Salvages a store: a damaged file in, a new store and a report out. The damaged file is only read."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.errors import StoreError, StoreMissing
from holdfast.file_lock import FileLock
from holdfast.schema.ids import Mint
from holdfast.store.sqlite.backup import check_free
from holdfast.store.sqlite.cut_off import settle
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.choose import Choice, Chooser
from holdfast.store.sqlite.salvage.harvest import Harvest, harvest
from holdfast.store.sqlite.salvage.log_file import log_bytes, not_given
from holdfast.store.sqlite.salvage.page_size import sized
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.sqlite.salvage.raw_file import RawFile, opened_raw
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.write import default_roots, write_store


def salvage(database: Database, target: Path, clock: Clock) -> SalvageReport:
    """Write everything that can be read of a store into a new one; never over a file."""
    check_free(target)
    if not target.absolute().parent.is_dir():
        raise StoreError(f"{target.parent} is no folder; make it, or name another")
    with _opened(database) as source:
        found, choice = _chosen(source.pages, clock)
        write_store(target, choice, found, source.pages, now_ms=clock.now_ms())
        return source.told(choice.report)


def survey(database: Database, clock: Clock) -> SalvageReport:
    """What a salvage would bring; nothing is written."""
    with _opened(database) as source:
        return source.told(_chosen(source.pages, clock)[1].report)


def _chosen(pages: Pages, clock: Clock) -> tuple[Harvest, Choice]:
    mint = Mint(clock)
    found = harvest(pages, default_roots())
    choice = Chooser(pages, found, now_ms=clock.now_ms(), mint=lambda: mint.descending("ses")).run()
    return found, choice


class _Source(NamedTuple):
    """The pages of a store, and what its disk has not given of them."""

    pages: Pages
    file: RawFile | None
    log_unreadable: int

    def told(self, report: SalvageReport) -> SalvageReport:
        """The report, with that; now that all was read."""
        gaps = list(report.gaps)
        if self.file is not None and self.file.unreadable:
            gaps.append(not_given(self.file.unreadable, "the file"))
        if self.log_unreadable:
            gaps.append(f"{not_given(self.log_unreadable, 'the log')}: more may be lost than is named")
        unproved = report.unproved or self.log_unreadable > 0
        return replace(report, gaps=tuple(gaps), unproved=unproved)


def _lock(database: Database, opened: ExitStack) -> None:
    try:
        lock = FileLock(database.lock_path)
    except OSError:
        return  # No process can write where not even the lock can be made.
    opened.callback(lock.close)
    lock.acquire()


@contextmanager
def _opened(database: Database) -> Iterator[_Source]:
    """The pages of a store that no process writes meanwhile, where its lock can be had."""
    if not database.path.exists():
        settle(database)
    with ExitStack() as opened:
        try:
            if not (database.path.exists() or database.log_path.exists()):
                # Nothing is made beside a store that is not there.
                raise StoreMissing(f"there is no store at {database.path}")
            _lock(database, opened)
            # Without its file, or with an empty one, a log still holds what was written last.
            file = opened.enter_context(opened_raw(database.path)) if database.path.exists() else None
            log, log_unreadable = log_bytes(database.log_path)
        except OSError as error:
            raise StoreError(f"{database.path} cannot be read: {error.strerror or error}") from error
        data = b"" if file is None else file
        yield _Source(sized(data, log, default_roots()), file, log_unreadable)

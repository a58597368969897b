"""Salvages a store: a damaged file in, a new store and a report out. The damaged file is only read."""

import mmap
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from holdfast.clock import Clock
from holdfast.errors import StoreError, StoreMissing
from holdfast.file_lock import FileLock
from holdfast.schema.ids import Mint
from holdfast.store.sqlite.backup import check_free
from holdfast.store.sqlite.cut_off import settle
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.choose import Choice, Chooser
from holdfast.store.sqlite.salvage.harvest import Harvest, harvest
from holdfast.store.sqlite.salvage.log_file import log_bytes
from holdfast.store.sqlite.salvage.page_size import sized
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.sqlite.salvage.report import SalvageReport
from holdfast.store.sqlite.salvage.write import default_roots, write_store


def salvage(database: Database, target: Path, clock: Clock) -> SalvageReport:
    """Write everything that can be read of a store into a new one; never over a file."""
    check_free(target)
    if not target.absolute().parent.is_dir():
        raise StoreError(f"{target.parent} is no folder; make it, or name another")
    with _opened(database) as pages:
        found, choice = _chosen(pages, clock)
        write_store(target, choice, found, pages, now_ms=clock.now_ms())
    return choice.report


def survey(database: Database, clock: Clock) -> SalvageReport:
    """What a salvage would bring; nothing is written."""
    with _opened(database) as pages:
        return _chosen(pages, clock)[1].report


def _chosen(pages: Pages, clock: Clock) -> tuple[Harvest, Choice]:
    mint = Mint(clock)
    found = harvest(pages, default_roots())
    choice = Chooser(pages, found, now_ms=clock.now_ms(), mint=lambda: mint.descending("ses")).run()
    return found, choice


def _lock(database: Database, opened: ExitStack) -> None:
    try:
        lock = FileLock(database.lock_path)
    except OSError:
        return  # No process can write where not even the lock can be made.
    opened.callback(lock.close)
    lock.acquire()


@contextmanager
def _opened(database: Database) -> Iterator[Pages]:
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
            file = opened.enter_context(database.path.open("rb")) if database.path.exists() else None
            log = log_bytes(database.log_path)
            size = 0 if file is None else os.fstat(file.fileno()).st_size
        except OSError as error:
            raise StoreError(f"{database.path} cannot be read: {error.strerror or error}") from error
        if file is None or size == 0:
            yield Pages(b"", log)
            return
        data = opened.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        yield sized(data, log, default_roots())

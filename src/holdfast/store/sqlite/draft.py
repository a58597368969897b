"""Where a file is written until it is whole and gets its name: beside that, and removed whatever happens.

A process that is killed leaves its draft. The next one removes it, if no other is at work: each holds a share
of a lock that is for nothing else. Beside a store that is the wake file's, elsewhere the folder's own.
"""

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import StoreBusy
from holdfast.file_lock import FileLock

if TYPE_CHECKING:
    from holdfast.store.sqlite.database import Database

SUFFIXES = ("", "-journal", "-wal", "-shm")


def drafting(database: "Database") -> AbstractContextManager[Path]:
    """A free name for a draft of what is to take the place of a store's file."""
    return _draft_of(database.path, database.wake_path)


def draft_beside(target: Path) -> AbstractContextManager[Path]:
    """A free name for a draft of a file that is not there yet."""
    return _draft_of(target, target.absolute().parent)


@contextmanager
def _draft_of(path: Path, locked: Path) -> Iterator[Path]:
    with working(locked, lambda: _remove_left(path)):
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            yield draft
        finally:
            remove_draft(draft)


@contextmanager
def working(locked: Path, remove_left: Callable[[], None]) -> Iterator[None]:
    """Be at work on drafts; if no other process is, remove what killed ones have left."""
    with closing(FileLock(locked, readonly=True)) as lock:
        # A disk without such locks does not tell who is at work: then nothing is removed.
        with suppress(StoreBusy, OSError):
            lock.acquire(wait_s=0)
            if locked.exists():
                remove_left()
            lock.release()
        with suppress(OSError):
            lock.acquire(shared=True)
        yield


def remove_draft(draft: Path) -> None:
    """Remove a draft, and what SQLite has left beside it."""
    for suffix in SUFFIXES:
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _remove_left(path: Path) -> None:
    """Remove the drafts of killed processes, and the drafts of these drafts."""
    name = re.escape(path.name)
    ours = re.compile(rf"(\.{name}\.[0-9a-f]{{8}}|\.\.{name}(\.[0-9a-f]{{8}}){{2}})(-journal|-wal|-shm)?")
    for each in path.absolute().parent.iterdir():
        if ours.fullmatch(each.name):
            each.unlink(missing_ok=True)

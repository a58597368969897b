"""Where a file is written that is to take the place of a store's: beside it, and removed whatever happens.

A process that is killed leaves its draft. The next one removes it, if no other is at work: each holds a share
of the lock on the wake file, which lies beside every store and is locked for nothing else.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from holdfast.errors import StoreBusy
from holdfast.file_lock import FileLock
from holdfast.store.sqlite.database import Database


@contextmanager
def drafting(database: Database) -> Iterator[Path]:
    """A free name for a draft."""
    path = database.path
    with closing(FileLock(database.wake_path, readonly=True)) as lock:
        try:
            lock.acquire(wait_s=0)
        except StoreBusy:
            pass
        else:
            if database.wake_path.exists():
                _remove_left(path)
            lock.release()
        lock.acquire(shared=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            yield draft
        finally:
            for suffix in ("", "-journal", "-wal", "-shm"):
                draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _remove_left(path: Path) -> None:
    """Remove the drafts of killed processes, and the drafts of these drafts."""
    name = re.escape(path.name)
    ours = re.compile(rf"(\.{name}\.[0-9a-f]{{8}}|\.\.{name}(\.[0-9a-f]{{8}}){{2}})(-journal|-wal|-shm)?")
    for each in path.parent.iterdir():
        if ours.fullmatch(each.name):
            each.unlink(missing_ok=True)

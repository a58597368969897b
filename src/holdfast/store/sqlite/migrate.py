"""Brings an older format up to date: a backup first, one transaction, counts verified."""

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from holdfast.errors import StoreError
from holdfast.store.sqlite.backup import copy_database

Migration = Callable[[apsw.Connection], None]

MIGRATIONS: Sequence[Migration] = ()
"""`MIGRATIONS[i]` leads from format `OLDEST` + i to the next."""

OLDEST = 1
"""The first format there was."""


def migrate(
    db: apsw.Connection, path: Path, found: int, migrations: Sequence[Migration], oldest: int
) -> None:
    """Apply what is missing. On any failure the store is as it was, and the backup stays beside it."""
    if not oldest <= found < oldest + len(migrations):
        raise StoreError(f"{path} has format {found}, which no Holdfast wrote; restore a backup")
    backup = path.with_name(f"{path.name}.format-{found}.backup")
    copy_database(db, backup, fresh=False)
    with db:
        before = _counts(db)
        for step in migrations[found - oldest :]:
            step(db)
        if _counts(db) != before:
            raise StoreError(f"{path} was not migrated: records would have been lost; its backup is {backup}")
        db.execute("UPDATE store SET value=? WHERE key='format'", (str(oldest + len(migrations)),))


def _counts(db: apsw.Connection) -> tuple[int, int]:
    return (
        db.execute("SELECT count(*) FROM session WHERE data IS NOT NULL").get,
        db.execute("SELECT count(*) FROM record WHERE data IS NOT NULL").get,
    )

"""Brings an older format up to date: a backup first, one transaction, counts verified."""

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from holdfast.errors import StoreError
from holdfast.store.sqlite.backup import copy_database

Migration = Callable[[apsw.Connection], None]

MIGRATIONS: Sequence[Migration] = ()
"""`MIGRATIONS[i]` leads from format i + 1 to i + 2."""


def migrate(db: apsw.Connection, path: Path, found: int, migrations: Sequence[Migration]) -> None:
    """Apply what is missing. On any failure the store is as it was, and the backup stays beside it."""
    backup = path.with_name(f"{path.name}.format-{found}.backup")
    copy_database(db, backup, fresh=False)
    with db:
        before = _counts(db)
        for step in migrations[found - 1 :]:
            step(db)
        if _counts(db) != before:
            raise StoreError(f"{path} was not migrated: records would have been lost; its backup is {backup}")
        db.execute("UPDATE store SET value=? WHERE key='format'", (str(1 + len(migrations)),))


def _counts(db: apsw.Connection) -> tuple[int, int]:
    return (
        db.execute("SELECT count(*) FROM session WHERE data IS NOT NULL").get,
        db.execute("SELECT count(*) FROM record WHERE data IS NOT NULL").get,
    )

"""Copies a live database with SQLite's backup API. Copying the file itself would drop its locks."""

import os
import secrets
from pathlib import Path

import apsw

from holdfast.errors import StoreError
from holdfast.person.private import make_file
from holdfast.store.sqlite.draft import draft_beside
from holdfast.store.tables.connection import set_pragmas
from holdfast.take_name import take_name


def check_free(target: Path, what: str = "") -> None:
    """Refuse a place where a file lies, or the log of a lost one: SQLite would play it into the new one."""
    if os.path.lexists(target):
        raise StoreError(f"{target} exists already; name another file {what}".rstrip())
    for suffix in ("-wal", "-journal", "-shm"):
        left = target.with_name(target.name + suffix)
        if os.path.lexists(left):
            raise StoreError(
                f"{left} is left of a file that is gone, and would spoil a new one; "
                f"move it away, or name another file {what}".rstrip()
            )


def copy_database(source: apsw.Connection, target: Path, *, fresh: bool = True, verify: bool = False) -> None:
    """Write a complete copy, never over a file; `fresh` gives it an incarnation of its own.

    With `verify` a copy that is not sound is thrown away, and `StoreError` says so.
    """
    check_free(target, "for the backup")
    if not target.absolute().parent.is_dir():
        raise StoreError(f"{target.parent} is no folder; make it, or name another")
    try:
        with draft_beside(target) as draft:
            make_file(draft)
            copy = apsw.Connection(str(draft))
            try:
                with copy.backup("main", source, "main") as backup:
                    while not backup.done:
                        backup.step(1000)
                set_pragmas(copy, "journal_mode=DELETE", "synchronous=FULL")
                if fresh:
                    copy.execute("UPDATE store SET value=? WHERE key='incarnation'", (secrets.token_hex(8),))
                    copy.execute("DELETE FROM owner; UPDATE session SET owner=NULL")
                if verify and (wrong := copy.execute("PRAGMA integrity_check(1)").get) != "ok":
                    raise StoreError(f"the store is damaged: {' '.join(str(wrong).split())}")
            finally:
                copy.close()
            fd = os.open(draft, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            take_name(draft, target)
    except apsw.FullError as error:  # Of the copy's disk: nothing is written to the other one.
        from holdfast.store.sqlite.database import full

        raise full(target) from error
    except FileExistsError:
        raise StoreError(f"{target} exists already; name another file for the backup") from None

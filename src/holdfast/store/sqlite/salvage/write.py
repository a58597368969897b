"""Writes the rows that were chosen as a new store: complete and on the disk, and then under its name."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from holdfast.errors import StoreError
from holdfast.person.private import make_file
from holdfast.store.base import FORMAT
from holdfast.store.columns import columns_of
from holdfast.store.sqlite.database import translated
from holdfast.store.sqlite.draft import remove_draft
from holdfast.store.sqlite.salvage.choose import Choice, KeptSession
from holdfast.store.sqlite.salvage.harvest import Harvest, content
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.tables import ddl
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.session_row import session_values
from holdfast.take_name import take_name


def default_roots() -> dict[str, int]:
    """Where the tables of a store begin that was made by us: always at the same pages."""
    db = apsw.Connection(":memory:")
    try:
        db.execute(ddl.CREATE + ddl.LATER)
        return {str(name): int(root) for name, root in db.execute("SELECT name, rootpage FROM sqlite_master")}
    finally:
        db.close()


def write_store(
    draft: Path, target: Path, choice: Choice, found: Harvest, pages: Pages, *, now_ms: int
) -> None:
    """Write the draft of a store, over a former one. It has an incarnation of its own, and no owners."""
    try:
        remove_draft(draft)
        make_file(draft)
        db = apsw.Connection(str(draft))
        try:
            with db:
                _fill(db, choice, found, pages, now_ms)
            if db.execute("PRAGMA integrity_check(1)").get != "ok":
                raise StoreError(f"{target} could not be written whole; try another disk")
        finally:
            db.close()
        with draft.open("rb") as file:
            os.fsync(file.fileno())
    except apsw.Error as error:
        raise translated(error, target) from error
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error


def name_store(draft: Path, target: Path) -> None:
    """Give the finished draft its name, never over a file."""
    try:
        take_name(draft, target)
    except FileExistsError:
        raise StoreError(f"{target} exists already; name another file") from None
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error


def _fill(db: apsw.Connection, choice: Choice, found: Harvest, pages: Pages, now_ms: int) -> None:
    db.execute(ddl.CREATE + ddl.LATER + ddl.VIEWS)
    horizon = found.settings.get("horizon", "0")
    db.executemany(
        "INSERT INTO store VALUES (?,?)",
        (
            ("format", str(FORMAT)),
            ("incarnation", secrets.token_hex(8)),
            ("horizon", horizon if horizon.isdigit() else "0"),
        ),
    )
    for session in choice.sessions:
        _put_session(db, session)
    db.executemany(
        "INSERT INTO record(k, session, kind, mark, seq, place, parent, at, id, data) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        _records(choice, pages),
    )
    db.executemany("INSERT INTO quarantine VALUES (?,?,?,?,?,?)", _quarantine(choice, found, pages, now_ms))


def _put_session(db: Connection, session: KeptSession) -> None:
    row = session.row
    db.execute(
        "INSERT INTO session(n, id, scope, position, seq, head, top, fence, at, data) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        (
            row.key,
            row.id,
            row.scope,
            row.position,
            row.seq,
            session.head,
            session.top,
            row.fence,
            row.at,
            None if session.data is None else session.data.decode(errors="replace"),
        ),
    )
    if session.data is None:
        db.execute(
            "UPDATE session SET project=?, directory=? WHERE n=?", (row.project, row.directory, row.key)
        )
    elif row.scope == 0:
        db.execute(
            "UPDATE session SET project=?, directory=?, path=?, slug=?, title=?, placement=?, updated=?, "
            "archived=?, agent_run=?, parent=? WHERE n=?",
            (*session_values(columns_of(row.id, session.data)), row.key),
        )


def _records(choice: Choice, pages: Pages) -> Iterator[tuple[object, ...]]:
    for session in choice.sessions:
        for row in session.records:
            data = content(pages, row)
            yield (
                row.key,
                row.session,
                row.kind,
                row.mark,
                row.seq,
                row.place,
                row.parent,
                row.at,
                row.id,
                None if row.removed or data is None else data.decode(),
            )


def _quarantine(choice: Choice, found: Harvest, pages: Pages, now_ms: int) -> Iterator[tuple[object, ...]]:
    for kept in found.quarantine:
        values = msgspec.structs.astuple(kept)
        yield (*values[:5], None if kept.data is None else kept.data.decode(errors="replace"))
    for each in choice.aside:
        data = content(pages, each.row)
        text = None if data is None else data.decode(errors="replace")
        yield (now_ms, each.reason, each.session or None, each.row.kind, each.row.id, text)

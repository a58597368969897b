"""Copies messages and parts from one session to another, in the tables.

The content was read already, so it is written and not read again; what must be seen is whether an original
has changed since. A change gives a record a number above all that the session had, and the index of moved
records finds those without a walk. (INSERT … SELECT takes twice as long: SQLite keeps what is selected from
the same table aside first.)
"""

from collections.abc import Iterator

from holdfast.errors import Conflict
from holdfast.schema import ids
from holdfast.store.batch import Copies
from holdfast.store.columns import KIND_NUMBER
from holdfast.store.record import StoredRecord
from holdfast.store.tables.connection import Connection
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK

_INSERT = (
    "INSERT INTO record(k, session, kind, mark, seq, parent, id, data) VALUES (?,?,?,?,?,?,?,CAST(? AS TEXT))"
)
_CHANGED = (
    "SELECT k FROM record INDEXED BY record_moved "
    f"WHERE session=? AND seq>? AND seq<>(k & {POSITION_MASK}) AND k<=?"
)


def check_originals(db: Connection, copies: Copies, source: int) -> None:
    """Refuse copies of what has changed since it was read."""
    keys = {source << POSITION_BITS | original.position for original in copies.originals}
    seen = max(original.seq for original in copies.originals)
    for (k,) in db.execute(_CHANGED, (source, seen, max(keys))):
        if k in keys:
            raise Conflict(f"what is copied from session {copies.source} changed meanwhile; read it again")


def check_rising(copies: Copies, top: str) -> str:
    """The greatest id body of the copies, if the least one is above those that their session has had."""
    if ids.body(copies.ids[0]) <= top:
        raise Conflict(
            f"id {copies.ids[0]} is not above the ids of session {copies.session}; mint the copies' ids anew"
        )
    return ids.body(copies.ids[-1])


def copy_rows(db: Connection, copies: Copies, session: int, first: int, *, inline: bool) -> None:
    """Write the copies, numbered from `first` on; not `inline`: their content is kept elsewhere."""
    rows: list[tuple[object, ...]] = []
    changed, message = copies.changed, None
    for seq, (original, id) in enumerate(zip(copies.originals, copies.ids, strict=True), first):
        k, parent = session << POSITION_BITS | seq, message
        if original.kind == "message":
            parent, message = None, k
        data = (changed.get(original.position) or original.data) if inline else b""
        rows.append((k, session, KIND_NUMBER[original.kind], original.mark, seq, parent, id, data))
    db.executemany(_INSERT, rows)


def copied(copies: Copies, first: int) -> Iterator[StoredRecord]:
    """The copies as records, numbered from `first` on."""
    message: str | None = None
    for seq, (original, id) in enumerate(zip(copies.originals, copies.ids, strict=True), first):
        parent = message
        if original.kind == "message":
            parent, message = None, id
        data = copies.changed.get(original.position) or original.data
        yield StoredRecord(copies.session, original.kind, id, parent, seq, seq, seq, original.mark, data)

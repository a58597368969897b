"""What a cell must look like to be a row of ours. Pure; a cell of any other shape is None.

A row is known by its numbers before its content is looked at: garbage that has ten columns, a key that begins
with its own session, a kind, a mark and an id does not happen.
"""

from typing import TypeGuard

import msgspec

from holdfast.schema.stored import KINDS, Mark
from holdfast.store.check import INT_MAX, is_id, is_session
from holdfast.store.sqlite.salvage.cells import Cell, Missing, Value
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK

_SESSION_COLUMNS, _RECORD_COLUMNS, _QUARANTINE_COLUMNS = 21, 10, 6
_MARKS = len(Mark)
SESSIONS_MAX = 1 << 23
"""Numbers of sessions are below this: a key has so many bits beside the position."""


class Row(msgspec.Struct, frozen=True):
    """A row of `record`, or of `session` (kind 0, its key the session's number). Its content is fetched
    later, from where it stands.
    """

    key: int
    session: int
    kind: int
    id: str
    seq: int
    position: int
    removed: bool
    torn: bool
    """Its content cannot be read: pages behind it are gone."""
    page: int
    offset: int
    mark: int = 0
    place: int | None = None
    parent: int | None = None
    at: int | None = None
    scope: int = 0
    fence: int = 0
    head: int = 0
    project: str | None = None
    directory: str | None = None
    title: str | None = None
    above: str | None = None
    """The session above this one, as its columns say."""


class Quarantined(msgspec.Struct, frozen=True):
    """A row of `quarantine`."""

    at: int
    reason: str
    session: str | None
    kind: int | None
    id: str | None
    data: bytes | None


def record_row(cell: Cell) -> Row | None:
    """A row of the table `record`."""
    if len(cell.columns) != _RECORD_COLUMNS:
        return None
    k, session, kind, mark, seq, place, parent, at, id, data = cell.columns
    position = cell.key & POSITION_MASK
    name = _text(id)
    fits = (
        k is None
        and session == cell.key >> POSITION_BITS
        and _is_int(kind, 1, len(KINDS) - 1)
        and _is_int(mark, 0, _MARKS - 1)
        and _is_int(seq, position, INT_MAX)
        and all(each is None or _is_int(each, -INT_MAX, 1 << 62) for each in (place, parent, at))
        and name is not None
        and is_id(name)
        and (data is None or isinstance(data, (bytes, Missing)))
    )
    if not fits:
        return None
    numbers = [each for each in (kind, mark, seq) if isinstance(each, int)]
    kind_, mark_, seq_ = numbers
    assert name is not None
    return Row(
        cell.key,
        cell.key >> POSITION_BITS,
        kind_,
        name,
        seq_,
        position,
        data is None,
        isinstance(data, Missing),
        cell.page,
        cell.offset,
        mark=mark_,
        place=_int(place),
        parent=_int(parent),
        at=_int(at),
    )


def session_row(cell: Cell) -> Row | None:
    """A row of the table `session`."""
    if len(cell.columns) != _SESSION_COLUMNS:
        return None
    n, id, scope, position, seq, head, top, _, fence, project, directory, _, above = cell.columns[:13]
    title, at, data = cell.columns[14], *cell.columns[19:]
    name = _text(id)
    fits = (
        n is None
        and 0 < cell.key < SESSIONS_MAX
        and _is_int(scope, 0, 2)
        and _is_int(position, 0, INT_MAX)
        and _is_int(seq, position, INT_MAX)
        and _is_int(head, 0, INT_MAX)
        and _is_int(fence, 0, INT_MAX)
        and isinstance(top, (bytes, Missing))
        and (at is None or isinstance(at, Missing) or _is_int(at, -INT_MAX, INT_MAX))
        and name is not None
        and is_session(name)
        and (data is None or isinstance(data, (bytes, Missing)))
    )
    if not fits:
        return None
    numbers = [each for each in (scope, position, seq, head, fence) if isinstance(each, int)]
    scope_, position_, seq_, head_, fence_ = numbers
    assert name is not None
    return Row(
        cell.key,
        cell.key,
        0,
        name,
        seq_,
        position_,
        data is None,
        isinstance(data, Missing),
        cell.page,
        cell.offset,
        at=_int(at),
        scope=scope_,
        fence=fence_,
        head=head_,
        project=_text(project),
        directory=_text(directory),
        title=_text(title),
        above=_text(above),
    )


def quarantined(cell: Cell) -> Quarantined | None:
    """A row of the table `quarantine`."""
    if len(cell.columns) != _QUARANTINE_COLUMNS:
        return None
    at, reason, session, kind, id, data = cell.columns
    words = _text(reason)
    if not isinstance(at, int) or words is None or isinstance(data, (int, float, Missing)):
        return None
    return Quarantined(at, words, _text(session), _int(kind), _text(id), data)


def _is_int(value: Value, least: Value, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and isinstance(least, int) and least <= value <= most


def _int(value: Value) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Value) -> str | None:
    if not isinstance(value, bytes):
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None

"""Everything in the pages that is a row of ours, and what the indexes say there should be. Pure.

A tree that reads cleanly may still be wrong: an inner page can be that of another table, or lack some of
its cells. So every leaf is looked at that no tree reaches. The pages below a lost inner one lie there, but so
do pages from the past that were freed: what the file itself calls free is left out, and a row that a tree
reaches in a free page is not a living one. Of several states of a row all are handed on, and `choose` takes
the newest. An index proves nothing against a row that lives.
"""

from collections.abc import Callable, Iterator

import msgspec

from holdfast.store.check import INT_MAX
from holdfast.store.sqlite.salvage.cells import LEAF_TABLE, Cell, Value, loose_cells, node, read_cell
from holdfast.store.sqlite.salvage.pages import Pages
from holdfast.store.sqlite.salvage.rows import (
    SESSIONS_MAX,
    Quarantined,
    Row,
    quarantined,
    record_row,
    session_row,
)
from holdfast.store.sqlite.salvage.tree import walk_index, walk_table
from holdfast.store.tables.ddl import POSITION_BITS, POSITION_MASK

TABLES = ("session", "record", "quarantine")
SCHEMA_ROOT = 1


class Index(msgspec.Struct):
    """What an index says: the keys of rows with their columns. `whole`: what is not in it does not exist."""

    entries: dict[int, tuple[object, ...]] = {}
    whole: bool = False
    pages_lost: int = 0


class Harvest(msgspec.Struct):
    """The rows by key, each state of them that was found; live ones come from the tree itself."""

    live: dict[str, list[Row]]
    stray: dict[str, list[Row]]
    """Rows of pages that no tree reaches, or that stand in a page without a head."""
    lost: dict[str, dict[int, tuple[int, int]]]
    """The pages of each table that cannot be read, with the keys they had."""
    session_names: Index
    record_names: Index
    removed_sessions: set[int]
    removed_records: set[int]
    moved: dict[int, int]
    """The numbers of records that were written again, by their keys, as an index says."""
    heads: dict[int, int]
    """The latest number of any record of each session, by the session's number, as an index says."""
    quarantine: list[Quarantined]
    quarantine_lost: int
    """How many pages of the quarantine cannot be read."""
    settings: dict[str, str]
    pages: int
    trouble: str
    """What is wrong with the log."""


def harvest(pages: Pages, roots: dict[str, int]) -> Harvest:
    """Read everything. `roots` are those of our own tables, for a file whose schema cannot be read."""
    roots = roots | schema_roots(pages)
    walks = {
        "session": walk_table(pages, roots["session"], session_row),
        "record": walk_table(pages, roots["record"], record_row),
    }
    kept = walk_table(pages, roots["quarantine"], quarantined)
    reached = {1}.union(kept.reached, *(walk.reached for walk in walks.values()))
    lost = {*pages.loose}.union(kept.lost, *(walk.lost for walk in walks.values()))
    free = pages.free()
    live: dict[str, list[Row]] = {"session": [], "record": []}
    strays: dict[str, list[Row]] = {"session": [], "record": []}
    for name, walk in walks.items():
        for row in walk.rows:
            (strays if row.page in free else live)[name].append(row)
    for cell in _stray_cells(pages, reached | free, lost):
        if (record := record_row(cell)) is not None:
            strays["record"].append(record)
        elif (session := session_row(cell)) is not None:
            strays["session"].append(session)
    moved = _index(pages, roots.get("record_moved"), _moves_record).entries
    heads = _index(pages, roots.get("session_head"), _numbers_session).entries
    return Harvest(
        live,
        strays,
        {name: walks[name].lost for name in strays},
        _index(pages, roots.get("sqlite_autoindex_session_1"), _names_session),
        _index(pages, roots.get("record_id"), _names_record),
        _removed(_index(pages, roots.get("session_removed"), _numbers_session), _living(live)),
        _removed(_index(pages, roots.get("record_removed"), _removes_record), _living_records(live)),
        {k: number for k, (_, number) in moved.items() if isinstance(number, int)},
        {n: number for n, (number,) in heads.items() if isinstance(number, int)},
        kept.rows,
        len(kept.lost),
        _settings(pages, roots.get("store")),
        pages.count,
        pages.trouble,
    )


def content(pages: Pages, row: Row) -> bytes | None:
    """The JSON of a row, read again from its page; None when it cannot be."""
    page = pages.page(row.page)
    cell = None if page is None else read_cell(pages, page, row.page, row.offset, LEAF_TABLE)
    found = cell.columns[-1] if cell is not None else None
    return found if isinstance(found, bytes) else None


def _stray_cells(pages: Pages, known: set[int], lost: set[int]) -> Iterator[Cell]:
    for number in (*range(2, pages.count + 1), *pages.loose):
        here = node(pages, number) if number not in known else None
        if here is not None and here.type == LEAF_TABLE:
            for offset in here.offsets:
                if (cell := read_cell(pages, here.page, number, offset, LEAF_TABLE)) is not None:
                    yield cell
    for number in lost:
        yield from loose_cells(pages, number)


def schema_roots(pages: Pages) -> dict[str, int]:
    """Where each table and index begins, by the file's own schema."""
    roots: dict[str, int] = {}
    for columns in walk_table(pages, SCHEMA_ROOT, lambda cell: cell.columns).rows:
        if len(columns) == 5 and isinstance(columns[1], bytes) and isinstance(columns[3], int):
            roots[columns[1].decode(errors="replace")] = columns[3]
    return roots


def _index(pages: Pages, root: int | None, fits: Callable[[list[Value]], bool]) -> Index:
    """An index by the keys of its rows, which are its last column; what is no entry of it does not count."""
    if root is None:
        return Index()
    walk = walk_index(pages, root)
    entries = {
        key: tuple(columns[:-1])
        for columns in walk.rows
        if fits(columns) and isinstance(key := columns[-1], int)
    }
    fitting = len(entries) == len(walk.rows)
    # Behind a damaged log an index may be an old one.
    return Index(dict(entries), walk.whole and fitting and not pages.trouble, len(walk.lost))


def _names_session(columns: list[Value]) -> bool:
    """An entry of the ids of sessions."""
    return len(columns) == 2 and isinstance(columns[0], bytes) and _is_number(columns[1])


def _names_record(columns: list[Value]) -> bool:
    """An entry of the ids of records."""
    if len(columns) != 4 or not isinstance(columns[1], bytes):
        return False
    session, _, kind, k = columns
    return (
        isinstance(k, int) and isinstance(kind, int) and session == k >> POSITION_BITS and _is_number(session)
    )


def _numbers_session(columns: list[Value]) -> bool:
    """An entry of the tombstones of sessions, or of their heads."""
    return len(columns) == 2 and isinstance(columns[0], int) and _is_number(columns[1])


def _removes_record(columns: list[Value]) -> bool:
    """An entry of the tombstones of records."""
    if len(columns) != 2:
        return False
    seq, k = columns
    return isinstance(seq, int) and isinstance(k, int) and 0 < k & POSITION_MASK <= seq <= INT_MAX


def _moves_record(columns: list[Value]) -> bool:
    """An entry of the numbers of records that were written again."""
    if len(columns) != 3:
        return False
    session, seq, k = columns
    return isinstance(k, int) and session == k >> POSITION_BITS and _removes_record([seq, k])


def _is_number(n: Value) -> bool:
    return isinstance(n, int) and 0 < n < SESSIONS_MAX


def _removed(index: Index, living: set[int]) -> set[int]:
    """What an index of tombstones says was removed: nothing, if it names what lives. Then it is another one,
    whose entries look the same.
    """
    return set() if living & index.entries.keys() else set(index.entries)


def _living(live: dict[str, list[Row]]) -> set[int]:
    """The sessions that have a row of their own, or records: an erased session has none."""
    return {row.session for rows in live.values() for row in rows if not row.removed}


def _living_records(live: dict[str, list[Row]]) -> set[int]:
    return {row.key for row in live["record"] if not row.removed}


def _settings(pages: Pages, root: int | None) -> dict[str, str]:
    rows = walk_index(pages, root).rows if root is not None else []
    return {
        columns[0].decode(errors="replace"): columns[1].decode(errors="replace")
        for columns in rows
        if len(columns) == 2 and isinstance(columns[0], bytes) and isinstance(columns[1], bytes)
    }

"""Walks a b-tree as far as it goes, and says where it does not. Pure."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from holdfast.store.sqlite.salvage.cells import (
    INTERIOR_INDEX,
    INTERIOR_TABLE,
    LEAF_INDEX,
    LEAF_TABLE,
    Cell,
    Node,
    Value,
    child,
    key_of,
    node,
    read_cell,
)
from holdfast.store.sqlite.salvage.pages import Pages

_DEPTH_MAX = 24
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


T = TypeVar("T")


class Walk(msgspec.Struct, Generic[T]):
    """The rows of a tree, the pages it was found in, and what is missing of it."""

    shaped: Callable[[Cell], T | None]
    """Makes a row of a cell, at once: the content of all cells together may not fit into memory."""
    rows: list[T] = []
    reached: set[int] = set()
    lost: dict[int, tuple[int, int]] = {}
    """Pages that should be part of the tree and cannot be read (whole), with the keys that they had: above
    the first, up to the second."""

    @property
    def whole(self) -> bool:
        """Whether every page and every cell of the tree could be read."""
        return not self.lost


def walk_table(pages: Pages, root: int, shaped: Callable[[Cell], T | None]) -> Walk[T]:
    """The rows of a table; a cell that is none of its rows is left out."""
    found = Walk(shaped)
    _descend(pages, root, (LEAST, GREATEST), found, table=True, depth=0)
    return found


def walk_index(pages: Pages, root: int) -> Walk[list[Value]]:
    """The entries of an index, or of a table without row ids."""
    found: Walk[list[Value]] = Walk(lambda cell: cell.columns)
    _descend(pages, root, (LEAST, GREATEST), found, table=False, depth=0)
    return found


def _descend(
    pages: Pages, number: int, between: tuple[int, int], found: Walk[T], *, table: bool, depth: int
) -> None:
    here = node(pages, number) if number not in found.reached and depth < _DEPTH_MAX else None
    inner, leaf = (INTERIOR_TABLE, LEAF_TABLE) if table else (INTERIOR_INDEX, LEAF_INDEX)
    if here is None or here.type not in (inner, leaf) or (here.type == inner and not here.offsets):
        found.lost[number] = between
        return
    found.reached.add(number)
    if here.type == leaf:
        _take(pages, here, between, found)
        return
    low, high = between
    for offset in here.offsets:
        upto = GREATEST
        if table:
            upto = key_of(here, offset)
        else:
            _take_one(pages, here, offset, between, found)
        _descend(pages, child(here, offset), (low, upto), found, table=table, depth=depth + 1)
        low = upto if table else low
    _descend(pages, here.last, (low, high), found, table=table, depth=depth + 1)


def _take(pages: Pages, here: Node, between: tuple[int, int], found: Walk[T]) -> None:
    for offset in here.offsets:
        _take_one(pages, here, offset, between, found)


def _take_one(pages: Pages, here: Node, offset: int, between: tuple[int, int], found: Walk[T]) -> None:
    cell = read_cell(pages, here.page, here.number, offset, here.type)
    if cell is not None and (row := found.shaped(cell)) is not None:
        found.rows.append(row)
    if cell is None or (here.type == LEAF_TABLE and not between[0] < cell.key <= between[1]):
        found.lost[here.number] = between  # A row beyond its keys: the page is of another place.

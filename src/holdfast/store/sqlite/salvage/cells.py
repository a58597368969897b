"""The cells of a b-tree page, and the columns of a row. Pure; what cannot be is `None` or `MISSING`."""

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.store.sqlite.salvage.pages import HEADER, Pages

INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE = 2, 5, 10, 13
_TYPES = frozenset((INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE))
_INTERIOR = frozenset((INTERIOR_INDEX, INTERIOR_TABLE))
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_PAYLOAD_MAX = 1 << 31
_COLUMNS_MAX = 64


class Missing:
    """The value of a column whose bytes are gone."""


MISSING: Final = Missing()
Value = int | float | bytes | None | Missing


class Node(msgspec.Struct, frozen=True):
    """A b-tree page: its type, its cells' offsets, and for an inner one its last child."""

    number: int
    page: bytes
    type: int
    offsets: tuple[int, ...]
    last: int = 0


class Cell(msgspec.Struct, frozen=True):
    """A row in a page: the key of its row (0 in an index), its columns, and where it stands."""

    key: int
    columns: list[Value]
    page: int
    offset: int


def node(pages: Pages, number: int) -> Node | None:
    """A page read as a node; None when it cannot be one."""
    page = pages.page(number)
    if page is None:
        return None
    at = HEADER if number == 1 else 0
    kind = page[at]
    if kind not in _TYPES:
        return None
    begin = at + (12 if kind in _INTERIOR else 8)
    count = int.from_bytes(page[at + 3 : at + 5])
    end = begin + 2 * count
    if end > pages.size:
        return None
    offsets = struct.unpack(f">{count}H", page[begin:end])
    if any(not end <= offset <= pages.size - 2 for offset in offsets):
        return None
    last = int.from_bytes(page[at + 8 : at + 12]) if kind in _INTERIOR else 0
    return Node(number, page, kind, offsets, last)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where the next thing begins."""
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | data[at + 8], at + 9


def child(node: Node, offset: int) -> int:
    """The page below a cell of an inner node."""
    return int.from_bytes(node.page[offset : offset + 4])


def key_of(node: Node, offset: int) -> int:
    """The greatest key below a cell of an inner table node."""
    return signed(varint(node.page[offset + 4 : offset + 13] + bytes(9), 0)[0])


def signed(value: int) -> int:
    """A 64-bit number with its sign."""
    return value - (1 << 64) if value >> 63 else value


def read_cell(pages: Pages, page: bytes, number: int, offset: int, kind: int) -> Cell | None:
    """The row at an offset of a page; None when there is none."""
    try:
        at = offset + 4 if kind == INTERIOR_INDEX else offset
        size, at = varint(page, at)
        key = 0
        if kind == LEAF_TABLE:
            key, at = varint(page, at)
        if not 0 < size <= _PAYLOAD_MAX:
            return None
        columns = _columns(_payload(pages, page, at, size, table=kind == LEAF_TABLE), size)
    except (IndexError, struct.error):
        return None
    return None if columns is None else Cell(signed(key), columns, number, offset)


def loose_cells(pages: Pages, number: int) -> Iterator[Cell]:
    """Whatever looks like a table row, at any offset of a page whose head is gone."""
    page = pages.page(number)
    for offset in range(pages.size - 4) if page is not None else ():
        assert page is not None
        if not page[offset]:
            continue  # A cell begins with its size. What a disk has not given is full of zeros.
        cell = read_cell(pages, page, number, offset, LEAF_TABLE)
        if cell is not None:
            yield cell


def _payload(pages: Pages, page: bytes, at: int, size: int, *, table: bool) -> bytes:
    """The bytes of a row, from its page and the chain of pages behind it; fewer where the chain is broken."""
    usable = pages.size
    most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return page[at : min(at + size, usable)]
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    if at + local + 4 > usable:
        return b""
    pieces, left = [page[at : at + local]], size - local
    following = int.from_bytes(page[at + local : at + local + 4])
    seen: set[int] = set()
    while left > 0 and following not in seen:
        seen.add(following)
        more = pages.page(following)
        if more is None:
            break
        pieces.append(more[4 : min(4 + left, usable)])
        left -= len(pieces[-1])
        following = int.from_bytes(more[:4])
    if left <= 0 and following != 0:
        pieces.pop()  # A chain ends in zero: the page that is the last of this one is not its own.
    return b"".join(pieces)


def _columns(payload: bytes, size: int) -> list[Value] | None:
    """The values of a row; None when it is no row."""
    head, at = varint(payload, 0)
    if not at <= head <= min(size, len(payload)):
        return None
    types: list[int] = []
    while at < head:
        kind, at = varint(payload, at)
        types.append(kind)
        if len(types) > _COLUMNS_MAX or kind in (10, 11):
            return None
    if at != head or head + sum(map(_width, types)) != size:
        return None
    values: list[Value] = []
    for kind in types:
        width = _width(kind)
        values.append(_value(kind, payload[at : at + width]) if at + width <= len(payload) else MISSING)
        at += width
    return values


def _width(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    return 8 if kind == 7 else _INTEGERS.get(kind, 0)


def _value(kind: int, raw: bytes) -> Value:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return float(struct.unpack(">d", raw)[0])
    return int.from_bytes(raw, signed=True) if kind < 12 else raw

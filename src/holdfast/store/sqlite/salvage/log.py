"""The write-ahead log: which pages it holds in the state of its last whole commit. Pure, bytes in, pages out.

A frame counts when its salts are the log's and the running checksum holds; frames after the last commit, or
after the first one that does not hold, never happened.
"""

import struct

import msgspec

_HEADER, _FRAME = 32, 24
_MAGIC = 0x377F0682
_MASK = 0xFFFFFFFF


class Log(msgspec.Struct, frozen=True):
    """Where in the log each committed page stands, and how many pages the database then had."""

    page_size: int
    offsets: dict[int, int]
    pages: int


def read_log(data: bytes) -> Log | None:
    """What a log has committed; None when it has committed nothing that can be trusted."""
    if len(data) < _HEADER:
        return None
    magic, _, page_size, _, salt_1, salt_2, *sums = struct.unpack(">8I", data[:_HEADER])
    if magic & ~1 != _MAGIC or not is_page_size(page_size):
        return None
    order = ">" if magic & 1 else "<"
    if _checksum(data[:24], (0, 0), order) != tuple(sums):
        return None
    offsets: dict[int, int] = {}
    written: dict[int, int] = {}
    pages, at, running = 0, _HEADER, (sums[0], sums[1])
    while at + _FRAME + page_size <= len(data):
        number, commit, *salts_and_sums = struct.unpack(">6I", data[at : at + _FRAME])
        running = _checksum(data[at : at + 8], running, order)
        running = _checksum(data[at + _FRAME : at + _FRAME + page_size], running, order)
        if salts_and_sums != [salt_1, salt_2, *running]:
            break
        written[number] = at + _FRAME
        if commit:
            offsets |= written
            written.clear()
            pages = commit
        at += _FRAME + page_size
    return Log(page_size, offsets, pages) if offsets else None


def is_page_size(size: int) -> bool:
    """Whether SQLite has pages of this size."""
    return 512 <= size <= 65536 and size & (size - 1) == 0


def _checksum(data: bytes, running: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = running
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second

"""The parts of a write-ahead log: its head, its frames, and the checksums that run on from one to the next.
Pure, and says nothing of what they mean: that is `log`.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Protocol

import msgspec

HEADER, FRAME = 32, 24
_MAGIC = 0x377F0682
_MASK = 0xFFFFFFFF
_PAGE_SIZE = 4096
_LIVES = 1 << 16
"""How many times a log is begun again, at most, before its file is removed."""
_TRIES, _TRIES_MAX = 8, 128
"""How many pairs of frames are summed to find out of which log they are: with the same salts, and in all."""
_TABLE_PAGES: Final = (0x05, 0x0D)

Sum = tuple[int, int]


class Bytes(Protocol):
    """Bytes, or what is read piece by piece."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> bytes: ...


class Head(msgspec.Struct, frozen=True):
    """What the head of a log says."""

    page_size: int
    order: str
    salts: Sum
    seeds: tuple[Sum, ...]
    """The sums that the first frame may run on from."""
    sound: bool = True


class Frame(msgspec.Struct, frozen=True, gc=False):
    """What stands before a page."""

    number: int
    commit: int
    salts: Sum
    stored: Sum
    at: int
    """Where its page stands."""


def is_page_size(size: int) -> bool:
    """Whether SQLite has pages of this size."""
    return 512 <= size <= 65536 and size & (size - 1) == 0


def head_of(data: Bytes) -> Head | None:
    """What the head of a log says; where it is damaged, what the frames say that are whole."""
    if len(data) < HEADER:
        return None
    lead = data[:HEADER]
    magic, _, page_size, _, salt_1, salt_2, *stored = struct.unpack(">8I", lead)
    sums = {order: _checksum(lead[:24], (0, 0), order) for order in "<>"}
    order = ">" if magic & 1 else "<"
    seed = (stored[0], stored[1])
    if magic & ~1 == _MAGIC and is_page_size(page_size) and sums[order] == seed:
        return Head(page_size, order, (salt_1, salt_2), (seed,))
    for size in dict.fromkeys((_PAGE_SIZE, page_size)) if is_page_size(page_size) else (_PAGE_SIZE,):
        for order, made in sums.items():
            head = Head(size, order, (0, 0), (seed, made), sound=False)
            if (salts := _salts(data, head)) is not None:
                return msgspec.structs.replace(head, salts=salts)
    return None


def _salts(data: Bytes, head: Head) -> Sum | None:
    """The salts of the first frames that hold, if there are such: upon the head, or upon the frame before.

    Every frame is looked at, so that it does not matter how much of the beginning is damaged; only a few are
    summed, since that takes a hundred times as long.
    """
    for first in frames(data, head, end=1):
        if first.number and first.stored in [frame_sum(data, first, head, seed) for seed in head.seeds]:
            return first.salts
    tried: Counter[Sum] = Counter()
    for before, frame in pairwise(frames(data, head)):
        if not frame.number or frame.salts != before.salts or tried[frame.salts] == _TRIES:
            continue
        tried[frame.salts] += 1
        if frame.stored == frame_sum(data, frame, head, before.stored):
            return frame.salts
        if tried.total() == _TRIES_MAX:
            break
    return None


def frames(data: Bytes, head: Head, begin: int = 0, end: int | None = None) -> Iterator[Frame]:
    """The frames of a log, counted from 0, whether they hold or not; no half one."""
    step = FRAME + head.page_size
    count = max(len(data) - HEADER, 0) // step
    for i in range(begin, count if end is None else min(count, end)):
        at = HEADER + i * step
        number, commit, salt_1, salt_2, *stored = struct.unpack(">6I", data[at : at + FRAME])
        yield Frame(number, commit, (salt_1, salt_2), (stored[0], stored[1]), at + FRAME)


def committed_end(data: Bytes, head: Head, begin: int = 0) -> int:
    """How many frames there are up to the last with which a transaction may end. What stands behind it was
    never committed: it need not be read, and there may be much of it.
    """
    end = maybe = 0
    for i, frame in enumerate(frames(data, head, begin), begin + 1):
        if frame.commit and may_end(frame, head):
            maybe = i
        if frame.salts == head.salts:
            end = maybe
    return end


def may_end(frame: Frame, head: Head) -> bool:
    """Whether a transaction may end with a frame that need not hold. What a lost write has left there is
    empty, or of a former life of the log, whose first salt was lower: that tells of no end.
    """
    if frame.salts == head.salts:
        return bool(frame.commit)
    return frame.salts != (0, 0) and not 0 < (head.salts[0] - frame.salts[0]) & _MASK <= _LIVES


def is_of_table(data: Bytes, frame: Frame) -> bool:
    """Whether its page belongs to a table with numbered rows, not to an index or a table that is one."""
    return data[frame.at : frame.at + 1][0] in _TABLE_PAGES


def frame_sum(data: Bytes, frame: Frame, head: Head, seed: Sum) -> Sum:
    """The checksum of a frame that runs on from another."""
    begun = _checksum(data[frame.at - FRAME : frame.at - FRAME + 8], seed, head.order)
    return _checksum(data[frame.at : frame.at + head.page_size], begun, head.order)


def _checksum(data: bytes, running: Sum, order: str) -> Sum:
    first, second = running
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second

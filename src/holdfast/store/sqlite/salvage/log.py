"""The write-ahead log: which pages it holds in the state of its last whole commit. Pure, bytes in, pages out.

A frame counts when the checksum holds that runs on from the frame before it. SQLite stops at the first that
does not hold, and drops what stands behind it. Here the reading goes on from the sum that is stored in the
damaged frame: whatever is whole and committed behind it was acknowledged once.

Three things look like damage and are none. A crash leaves the last transaction torn: behind the break there
is no commit. A log that was begun again has frames of its former life behind the living ones: these have
other salts. A transaction that was rolled back may leave its frames: they have the log's salts and no commit.
"""

import mmap
import struct
from collections.abc import Iterator

import msgspec

HEADER, _FRAME = 32, 24
_MAGIC = 0x377F0682
_MASK = 0xFFFFFFFF
_PAGE_SIZE = 4096

Bytes = bytes | mmap.mmap
Sum = tuple[int, int]


class Log(msgspec.Struct, frozen=True):
    """Where in the log each committed page stands, and how many pages the database then had."""

    page_size: int
    offsets: dict[int, int]
    pages: int
    frames: int
    damaged: tuple[int, ...] = ()
    """The frames, from 1, that do not hold although a commit stands behind them; 0 is the head of the log."""
    loose: tuple[int, ...] = ()
    """Where pages stand in such frames of which no later state is known: they may still have rows."""

    @property
    def trouble(self) -> str:
        """What is wrong with the log; empty when nothing is."""
        if not self.damaged:
            return ""
        if self.damaged[0] == 0:
            return f"the head of the log is damaged, which has {self.frames} frames"
        more = f" and {len(self.damaged) - 1} more" if len(self.damaged) > 1 else ""
        return f"the log is damaged at frame {self.damaged[0]}{more} of {self.frames}"


class _Head(msgspec.Struct, frozen=True):
    page_size: int
    order: str
    salts: Sum
    seeds: tuple[Sum, ...]
    """The sums that the first frame may run on from."""
    sound: bool = True


class _Frame(msgspec.Struct, frozen=True):
    number: int
    commit: int
    salts: Sum
    stored: Sum
    at: int
    """Where its page stands."""


def read_log(data: Bytes) -> Log | None:
    """What a log has committed; None when it has committed nothing that can be trusted."""
    head = _head(data)
    if head is None:
        return None
    end = max((i for i, frame in enumerate(_frames(data, head)) if frame.salts == head.salts), default=-1) + 1
    offsets: dict[int, int] = {}
    written: dict[int, int] = {}
    broken: list[int] = [] if head.sound else [0]
    pages, committed, seeds = 0, 0, head.seeds
    unsure: dict[int, _Frame] = {}
    for i, frame in zip(range(1, end + 1), _frames(data, head), strict=False):
        sums = [_sum(data, frame, head, seed) for seed in seeds]
        if frame.stored not in sums:
            broken.append(i)
            unsure[i] = frame
            seeds = (frame.stored, sums[0])
            continue
        if frame.stored != sums[0] and i - 1 in unsure:  # Only the sum of the frame before was damaged.
            before = unsure.pop(i - 1)
            written[before.number] = before.at
        if frame.salts != head.salts:
            broken.append(i)
        written[frame.number] = frame.at
        seeds = (frame.stored,)
        if frame.commit:
            offsets |= written
            written.clear()
            pages, committed = frame.commit, i
    if not offsets:
        return None
    return Log(
        head.page_size,
        offsets,
        pages,
        committed,
        tuple(i for i in broken if i < committed),
        tuple(
            frame.at
            for i, frame in unsure.items()
            if i < committed and offsets.get(frame.number, 0) < frame.at
        ),
    )


def is_page_size(size: int) -> bool:
    """Whether SQLite has pages of this size."""
    return 512 <= size <= 65536 and size & (size - 1) == 0


def _head(data: Bytes) -> _Head | None:
    """What the head of a log says; where it is damaged, what the first frames say."""
    if len(data) < HEADER:
        return None
    magic, _, page_size, _, salt_1, salt_2, *stored = struct.unpack(">8I", data[:HEADER])
    sums = {order: _checksum(data[:24], (0, 0), order) for order in "<>"}
    order = ">" if magic & 1 else "<"
    seed = (stored[0], stored[1])
    if magic & ~1 == _MAGIC and is_page_size(page_size) and sums[order] == seed:
        return _Head(page_size, order, (salt_1, salt_2), (seed,))
    for size in (_PAGE_SIZE, page_size) if is_page_size(page_size) else (_PAGE_SIZE,):
        for order, made in sums.items():
            head = _Head(size, order, (0, 0), (seed, made), sound=False)
            frames = [frame for frame, _ in zip(_frames(data, head), range(2), strict=False)]
            holds = [
                frame.stored in [_sum(data, frame, head, each) for each in head.seeds] for frame in frames[:1]
            ]
            holds += [frame.stored == _sum(data, frame, head, frames[0].stored) for frame in frames[1:]]
            if any(holds):
                return msgspec.structs.replace(head, salts=frames[0].salts)
    return None


def _frames(data: Bytes, head: _Head) -> Iterator[_Frame]:
    """The frames of a log, whether they hold or not; no half one."""
    for at in range(HEADER, len(data) - _FRAME - head.page_size + 1, _FRAME + head.page_size):
        number, commit, salt_1, salt_2, *stored = struct.unpack(">6I", data[at : at + _FRAME])
        yield _Frame(number, commit, (salt_1, salt_2), (stored[0], stored[1]), at + _FRAME)


def _sum(data: Bytes, frame: _Frame, head: _Head, seed: Sum) -> Sum:
    """The checksum of a frame that runs on from another."""
    begun = _checksum(data[frame.at - _FRAME : frame.at - _FRAME + 8], seed, head.order)
    return _checksum(data[frame.at : frame.at + head.page_size], begun, head.order)


def _checksum(data: bytes, running: Sum, order: str) -> Sum:
    first, second = running
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second

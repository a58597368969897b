"""The write-ahead log: which pages it holds in the state of its last whole commit. Pure, bytes in, pages out.

A frame counts when the checksum holds that runs on from the frame before it. SQLite stops at the first that
does not hold, and drops what stands behind it. Here the reading goes on from the sum that is stored in the
damaged frame: whatever is whole and committed behind it was acknowledged once.

Four things look like damage and are none. A crash leaves the last transaction torn: behind the break there
is no commit. A log that was begun again has frames of its former life behind the living ones: these have
other salts. A transaction that was rolled back may leave its frames: they have the log's salts and no commit.
And a transaction that was written whole and never acknowledged (its process was killed, or its sync failed,
or the power went and took a middle that was not on the disk yet) has a commit, with what others have written
since in the place of its beginning. So damage is what has stood on the disk for certain: behind it, or as its
end, there is a commit upon which another one was written. What it costs: damage in the last transaction of
all cannot be told from that, and is taken for it, as SQLite does.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import Final

import msgspec

HEADER, FRAME = 32, 24
_MAGIC = 0x377F0682
_MASK = 0xFFFFFFFF
_PAGE_SIZE = 4096
LEASES: Final = 19
"""The page of the leases, which every store of ours has there: their renewal is not synced by itself."""
_LIVES = 1 << 16
"""How many times a log is begun again, at most, before its file is removed."""

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
    frames = [frame for frame, _ in zip(_frames(data, head), range(end), strict=False)]
    offsets: dict[int, int] = {}
    written: dict[int, int] = {}
    broken: list[int] = [] if head.sound else [0]
    pages, committed, seeds = 0, 0, head.seeds
    before: Log | None = None
    unsure: dict[int, _Frame] = {}
    synced = _Synced(head)
    for i, frame in enumerate(frames, 1):
        sums = [_sum(data, frame, head, seed) for seed in seeds]
        holds = frame.stored in sums
        synced.take(i, frame, holds=holds)
        if not broken and not (holds and frame.salts == head.salts):
            before = Log(head.page_size, dict(offsets), pages, committed) if offsets else None
        if not holds:
            broken.append(i)
            unsure[i] = frame
            seeds = (frame.stored, sums[0])
            continue
        if frame.stored != sums[0] and i - 1 in unsure:  # Only the sum of the frame before was damaged.
            of_before = unsure.pop(i - 1)
            written[of_before.number] = of_before.at
        if frame.salts != head.salts:
            broken.append(i)
        written[frame.number] = frame.at
        seeds = (frame.stored,)
        if frame.commit:
            offsets |= written
            written.clear()
            pages, committed = frame.commit, i
    if broken and broken[0] > synced.last:
        return before
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


class _Synced:
    """How far a log was on the disk for certain: up to an end upon which another transaction was written.

    Frames that run on from one another, from a break on, are a run: a rest that was never acknowledged is one
    transaction's, so its run has one end and no more.
    """

    def __init__(self, head: _Head) -> None:
        self.last = 0
        self._head = head
        self._is_behind_break = False
        self._end = 0
        self._is_synced = False

    def take(self, i: int, frame: _Frame, *, holds: bool) -> None:
        ends = bool(frame.commit) if holds else _may_end(frame, self._head)
        if not holds:
            self._is_behind_break, self._end = True, 0
        elif ends and self._end:
            self.last, self._end = self._end, 0
        self._is_synced = self._is_synced or frame.number != LEASES
        if ends and self._is_synced:
            self._is_synced = False
            if self._is_behind_break and frame.salts == self._head.salts:
                self._end = i
            else:
                self.last = i


def goes_on(data: Bytes, *, first: bool) -> bool:
    """Whether what is committed behind the frames that SQLite has read holds as well, as it does where
    another process has just written it. False means that the whole log must be read.

    `data`: the head, the last frame that was read (none, if the `first` is still to be read), and all behind.
    """
    head = _head(data)
    if head is None or not head.sound:
        return not first
    frames = list(_frames(data, head))
    seed = head.seeds[0] if first or not frames else frames.pop(0).stored
    while frames and frames[-1].salts != head.salts:
        frames.pop()
    while frames and not frames[-1].commit:
        frames.pop()
    for frame in frames:
        if frame.salts != head.salts or frame.stored != _sum(data, frame, head, seed):
            return False
        seed = frame.stored
    return True


def page_size(head: bytes) -> int:
    """The size of its pages, as the head of a log says it; 0 where it says none."""
    size = int.from_bytes(head[8:12])
    return size if is_page_size(size) else 0


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
    for at in range(HEADER, len(data) - FRAME - head.page_size + 1, FRAME + head.page_size):
        number, commit, salt_1, salt_2, *stored = struct.unpack(">6I", data[at : at + FRAME])
        yield _Frame(number, commit, (salt_1, salt_2), (stored[0], stored[1]), at + FRAME)


def _may_end(frame: _Frame, head: _Head) -> bool:
    """Whether a transaction may end with a frame that does not hold. What a lost write has left there is
    empty, or of a former life of the log, whose first salt was lower: that tells of no end.
    """
    if frame.salts == head.salts:
        return bool(frame.commit)
    return frame.salts != (0, 0) and not 0 < (head.salts[0] - frame.salts[0]) & _MASK <= _LIVES


def _sum(data: Bytes, frame: _Frame, head: _Head, seed: Sum) -> Sum:
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

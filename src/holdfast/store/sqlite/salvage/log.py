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
end, there is a commit that was synced and upon which another one was written. What it costs: damage in the
last transaction of all cannot be told from that, and is taken for it, as SQLite does; so is damage that takes
from the one before it all that tells of its having been synced.
"""

import msgspec

from holdfast.store.sqlite.salvage.frames import (
    FRAME,
    HEADER,
    Bytes,
    Frame,
    Head,
    committed_end,
    frame_sum,
    frames,
    head_of,
    is_of_table,
    may_end,
)


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


def read_log(data: Bytes) -> Log | None:
    """What a log has committed; None when it has committed nothing that can be trusted."""
    head = head_of(data)
    if head is None:
        return None
    offsets: dict[int, int] = {}
    written: dict[int, int] = {}
    broken: list[int] = [] if head.sound else [0]
    pages, committed, seeds = 0, 0, head.seeds
    before: Log | None = None
    unsure: dict[int, Frame] = {}
    synced = _Synced(head)
    for i, frame in enumerate(frames(data, head, end=committed_end(data, head)), 1):
        sums = [frame_sum(data, frame, head, seed) for seed in seeds]
        holds = frame.stored in sums
        synced.take(i, frame, holds=holds, is_of_table=is_of_table(data, frame))
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

    Every transaction is synced, but for those that renew a lease. They write pages of an index only, as which
    the owners are kept, also where they split one; nearly all else changes the row of a session or a record.
    So a page of a table is the sign that a transaction was synced: in a frame that holds and has the log's
    salts, since where a write was lost there may be any page of a former life.
    """

    def __init__(self, head: Head) -> None:
        self.last = 0
        self._head = head
        self._is_behind_break = False
        self._end = 0
        self._is_synced = False

    def take(self, i: int, frame: Frame, *, holds: bool, is_of_table: bool) -> None:
        # Frames of a former life run on from one another too, so their commits tell of no end either.
        ends = may_end(frame, self._head) and (bool(frame.commit) or not holds)
        is_own = frame.salts == self._head.salts
        if not holds:
            self._is_behind_break, self._end = True, 0
        elif ends and self._end:
            self.last, self._end = self._end, 0
        self._is_synced = self._is_synced or (holds and is_own and is_of_table)
        if ends and self._is_synced:
            self._is_synced = False
            if self._is_behind_break and is_own:
                self._end = i
            else:
                self.last = i


def extent(data: Bytes) -> int:
    """How many bytes of a log need be read: those up to its last commit. None where it is no log."""
    head = head_of(data)
    return 0 if head is None else HEADER + committed_end(data, head) * (FRAME + head.page_size)


def is_without_commits(data: Bytes) -> bool:
    """Whether a log holds nothing for certain; False for one of which not even the head can be read."""
    if len(data) < HEADER + FRAME:
        return True
    head = head_of(data)
    return head is not None and head.sound and committed_end(data, head) == 0


def goes_on(data: Bytes, read: int) -> bool:
    """Whether what is committed behind the frames that SQLite has read holds as well, as it does where
    another process has just written it. False means that the whole log must be read.

    Pages are read only as far as a commit stands behind them.
    """
    head = head_of(data)
    if head is None or not head.sound:
        return read > 0
    seed = head.seeds[0]
    for last in frames(data, head, read - 1, read) if read > 0 else ():
        seed = last.stored
    begin = max(read, 0)
    for frame in frames(data, head, begin, committed_end(data, head, begin)):
        if frame.salts != head.salts or frame.stored != frame_sum(data, frame, head, seed):
            return False
        seed = frame.stored
    return True

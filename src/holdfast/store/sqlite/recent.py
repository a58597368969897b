"""What this process committed last, so that its own followers need not read it back.

A turn commits a dozen times, and each commit wakes the feed and the runner, who want to know what has
changed: nearly always what this process has just written, and nothing else. What must stay true: an answer
from here is the one that the tables would give at the end of a commit of ours. Numbers rise store-wide, so
one that begins where the last one ended has no foreign one in between; where the numbers do not meet, or
anything was removed, everything is forgotten and the tables answer.
"""

import threading
from collections import deque
from typing import Final, NamedTuple

from holdfast.store.cursor import FeedCursor, parse_feed
from holdfast.store.record import Changed, Changes, StoredRecord

SPANS_MAX: Final = 64
BYTES_MAX: Final = 1 << 20

Keyed = tuple[int, StoredRecord]
"""A record under its key, by which changes are ordered: a session before its records, in their order."""


class Span(NamedTuple):
    """What one transaction wrote: all numbers after `start`, up to `end`."""

    start: int
    end: int
    records: tuple[Keyed, ...]
    size: int


class Recent:
    """The last transactions of this process, without a gap. The writing thread adds, the event loop asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: deque[Span] = deque()
        self._size = 0
        self._incarnation = ""

    def add(self, incarnation: str, start: int, records: tuple[Keyed, ...]) -> None:
        """A transaction that began at a number and wrote only what lives."""
        end = max(record.seq for _, record in records)
        size = sum(len(record.data) for _, record in records)
        with self._lock:
            if incarnation != self._incarnation or (self._spans and self._spans[-1].end != start):
                self._clear()
            self._incarnation = incarnation
            self._spans.append(Span(start, end, records, size))
            self._size += size
            while self._spans and (len(self._spans) > SPANS_MAX or self._size > BYTES_MAX):
                self._size -= self._spans.popleft().size

    def forget(self) -> None:
        """Something was removed, which only the tables can deliver."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._spans.clear()
        self._size = 0

    def changes(self, cursor: str | None, session: str | None, limit: int) -> Changes | None:
        """What was written here after a cursor; None when only the tables can tell."""
        start = None if cursor is None else parse_feed(cursor)
        if start is None or start.until is not None:
            return None
        with self._lock:
            if start.incarnation != self._incarnation or not self._spans:
                return None
            if self._spans[-1].end == start.after:
                return Changes((), cursor or "", complete=True)
            spans = [span for span in self._spans if span.start >= start.after]
        if not spans or spans[0].start != start.after:
            return None
        latest = {
            key: record
            for span in spans
            for key, record in span.records
            if session is None or record.session == session
        }
        if len(latest) > limit:
            return None
        changed = tuple(
            Changed(record, created=record.position > start.after, removed=False)
            for _, record in sorted(latest.items(), key=lambda item: item[0])
        )
        return Changes(changed, FeedCursor(start.incarnation, spans[-1].end).text(), complete=True)

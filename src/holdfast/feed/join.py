"""How a listener that caught up from the store joins the live stream without gap or repeat.

Its queue was opened before it read the store, so some queued frames are older than what it read. Each
durable frame names the record state behind it; what was read at the same or a later number is skipped, and
so is a child whose parent was read as removed later.
"""

import msgspec

from holdfast.feed.frame import Frame, Origin, origin_of
from holdfast.schema.stored import Kind, Mark
from holdfast.store.record import Changed, StoredRecord

Key = tuple[str, Kind, str]


class Joining:
    """What a listener read while catching up."""

    def __init__(self) -> None:
        self._read: dict[Key, int] = {}
        self._removed: dict[Key, int] = {}
        self._open: set[Key] = set()

    def note(self, change: Changed) -> None:
        """A change was delivered from the store."""
        record = change.record
        key = record.session, record.kind, record.id
        if change.again and self._read.get(key, -1) < record.position:
            self._forget_below(key)
        self._read[key] = record.seq
        if change.removed:
            self._removed[key] = record.seq
        self._open.discard(key)
        if record.mark is Mark.OPEN:
            self._open.add(key)

    def is_known(self, frame: Frame) -> bool:
        """Whether a queued frame holds nothing new."""
        origin = frame.origin
        if origin is None:
            return False
        read = self._read.get((origin.session, origin.kind, origin.id), -1)
        if read > origin.seq or (read == origin.seq and not origin.ahead):
            return True
        return self._is_gone(origin)

    def retold(self, frame: Frame) -> Frame:
        """A frame as this listener must get it: what it has read of already is not created once more."""
        origin = frame.origin
        if frame.type != "session.created" or origin is None:
            return frame
        if self._read.get((origin.session, "session", origin.id), -1) < origin.position:
            return frame  # What it has read was a former life, or nothing.
        return msgspec.structs.replace(frame, type="session.updated", _json=None)

    def is_over(self, record: StoredRecord) -> bool:
        """Whether an open part was read as finished or removed: to show it open would be a step back."""
        key = record.session, record.kind, record.id
        if self._read.get(key, -1) > record.seq and key not in self._open:
            return True
        return self._is_gone(origin_of(record, removed=False))

    def _forget_below(self, above: Key) -> None:
        """A former life is announced as gone: what was read below the id must be sent again, if it lives."""
        session, kind, _ = above
        for key in [key for key in self._read if key[0] == session and key[1] != "session"]:
            if kind == "session" or (kind == "message" and key[1] == "part"):
                del self._read[key]

    def _is_gone(self, origin: Origin) -> bool:
        return any(self._removed.get(key, -1) > origin.seq for key in _above(origin))


def _above(origin: Origin) -> tuple[Key, ...]:
    session: Key = (origin.session, "session", origin.session)
    if origin.parent is None:
        return (session,)
    return session, (origin.session, "message", origin.parent)

"""How a listener that caught up from the store joins the live stream without gap or repeat.

Its queue was opened before it read the store, so some queued frames are older than what it read. Each
durable frame names the record state behind it; what was read at the same or a later number is skipped, and
so is a child whose parent was read as removed later.
"""

from holdfast.feed.frame import Frame, Origin
from holdfast.schema.stored import Kind
from holdfast.store.record import Changed

Key = tuple[str, Kind, str]


class Joining:
    """What a listener read while catching up."""

    def __init__(self) -> None:
        self._read: dict[Key, int] = {}
        self._removed: dict[Key, int] = {}

    def note(self, change: Changed) -> None:
        """A change was delivered from the store."""
        record = change.record
        key = record.session, record.kind, record.id
        self._read[key] = record.seq
        if change.removed:
            self._removed[key] = record.seq

    def is_known(self, frame: Frame) -> bool:
        """Whether a queued frame tells nothing new."""
        origin = frame.origin
        if origin is None:
            return False
        if self._read.get((origin.session, origin.kind, origin.id), -1) >= origin.seq:
            return True
        return any(self._removed.get(key, -1) > origin.seq for key in _above(origin))


def _above(origin: Origin) -> tuple[Key, ...]:
    session: Key = (origin.session, "session", origin.session)
    if origin.parent is None:
        return (session,)
    return session, (origin.session, "message", origin.parent)

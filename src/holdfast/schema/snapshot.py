"""A snapshot of a session's files."""

from holdfast.schema.ids import MessageID
from holdfast.schema.wire import Count, Wire


class Snapshot(Wire, frozen=True, kw_only=True):
    """The files at one moment. `id` is that of a git tree in the shadow repository; `files` are those
    (absolute paths) that a step had changed before it.
    """

    id: str
    message_id: MessageID
    time: Count
    files: tuple[str, ...] = ()

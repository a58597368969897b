"""One entry of a session's todo list. The list is one record: its order is the position."""

from holdfast.schema.wire import Record


class Todo(Record, frozen=True, kw_only=True):
    """Status (pending, in_progress, completed, cancelled) and priority (high, medium, low) are free text."""

    content: str
    status: str
    priority: str

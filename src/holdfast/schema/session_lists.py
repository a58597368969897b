"""One entry of a session's todo list. The list is one record: its order is the position."""

from typing import Literal

from holdfast.schema.wire import Num, Record


class Todo(Record, frozen=True, kw_only=True):
    """Status (pending, in_progress, completed, cancelled) and priority (high, medium, low) are free text."""

    content: str
    status: str
    priority: str


DiffStatus = Literal["added", "deleted", "modified"]


class FileDiff(Record, frozen=True, kw_only=True):
    """`patch` is a unified diff with the whole file as context; for a binary file it is empty."""

    file: str | None = None
    patch: str | None = None
    additions: Num
    deletions: Num
    status: DiffStatus | None = None


class Share(Record, frozen=True, kw_only=True):
    """The `id` is the share's own, not the session's."""

    id: str
    secret: str
    url: str

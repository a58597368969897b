"""What changed in one file. Older records have `before` and `after` for a patch: kept as unknown fields."""

from typing import Literal

from holdfast.schema.wire import Num, Record

DiffStatus = Literal["added", "deleted", "modified"]


class FileDiff(Record, frozen=True, kw_only=True):
    """`patch` is a unified diff with the whole file as context; for a binary file it is empty."""

    file: str | None = None
    patch: str | None = None
    additions: Num
    deletions: Num
    status: DiffStatus | None = None

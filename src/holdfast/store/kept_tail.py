"""Where the model's view begins after a compaction: pure over the records that tell it."""

from collections.abc import Callable, Iterable

import msgspec

from holdfast.schema import typed
from holdfast.store.record import StoredRecord


class _Summary(msgspec.Struct, frozen=True):
    parentID: str = ""  # noqa: N815 - the wire's name


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    tail_start_id: str | None = None


_summary = typed.decoder(_Summary)
_part = typed.decoder(_Part)


def tail_of(
    summaries: Iterable[StoredRecord],
    message: Callable[[str], StoredRecord | None],
    parts: Callable[[str], Iterable[StoredRecord]],
) -> int:
    """The place of the first message that the last completed compaction kept; 0 without one.

    A summary answers a user message with a compaction part; that part may name an earlier message from
    which the tail was kept verbatim. A summary whose user message was removed tells nothing.
    """
    for summary in summaries:
        asked = message(_summary.decode(summary.data).parentID)
        if asked is None:
            continue
        for part in parts(asked.id):
            head = _part.decode(part.data)
            if head.type != "compaction":
                continue
            tail = message(head.tail_start_id) if head.tail_start_id else None
            return min(asked.place, tail.place) if tail else asked.place
    return 0

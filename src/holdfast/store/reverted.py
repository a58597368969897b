"""What a staged revert hides: the messages from its point on, in the model's order, or the parts from one on.

The point stands in the session's own JSON, by id; where it lies is looked up for each page, since numbers
change with an import. What must stay true: every page hides the same, unless it is asked for everything.
"""

from typing import TYPE_CHECKING

import msgspec

from holdfast.schema import typed
from holdfast.store.record import SessionRecord, StoredMessage, StoredRecord

if TYPE_CHECKING:
    from holdfast.store.base import Store

_REVERT = b'"revert"'


class Point(msgspec.Struct, frozen=True):
    """The message, and the part of it, from which on everything is hidden."""

    messageID: str = ""  # noqa: N815 - the wire's name
    partID: str | None = None  # noqa: N815 - the wire's name


class _Session(msgspec.Struct, frozen=True):
    revert: Point | None = None


class Hidden(msgspec.Struct, frozen=True):
    """Messages whose place is `below` are shown. Of the one at position `message`, the parts before the
    position `part` are.
    """

    below: int
    message: int | None = None
    part: int | None = None


_session = typed.decoder(_Session)


def point_in(data: bytes) -> Point | None:
    """The point of the revert that is staged in a session, given the session's JSON."""
    if _REVERT not in data:
        return None
    try:
        return _session.decode(data).revert
    except msgspec.MsgspecError:
        return None  # Whoever decodes the session names what is wrong with it.


def hidden(message: StoredRecord | None, part: StoredRecord | None) -> Hidden | None:
    """What is hidden, given the records that a point names; nothing if there is no such message.

    A part that is not in that message counts for nothing.
    """
    if message is None:
        return None
    if part is None or part.parent != message.id:
        return Hidden(message.place)
    return Hidden(message.place + 1, message.position, part.position)


async def find(store: "Store", record: SessionRecord) -> Hidden | None:
    """What the revert that is staged in a session hides, if there is one."""
    point = point_in(record.data)
    if point is None:
        return None
    part = None if point.partID is None else await store.get(record.id, "part", point.partID)
    return hidden(await store.get(record.id, "message", point.messageID), part)


def shown(message: StoredMessage, hidden: Hidden | None) -> StoredMessage | None:
    """What is shown of a message; None if it is hidden."""
    if hidden is None:
        return message
    if message.info.place >= hidden.below:
        return None
    if hidden.part is None or message.info.position != hidden.message:
        return message
    return StoredMessage(message.info, tuple(part for part in message.parts if part.position < hidden.part))

"""A message together with what it says, as pages and exports have it."""

import msgspec

from holdfast.schema.message import Message
from holdfast.schema.part import Part


class MessageWithParts(msgspec.Struct, frozen=True):
    """A message and its content."""

    info: Message
    parts: tuple[Part, ...]

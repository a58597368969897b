"""The point from which on a revert takes everything back. Pure."""

from collections.abc import Sequence

import msgspec

from holdfast.errors import NotFound
from holdfast.schema.file_part import FilePart
from holdfast.schema.ids import MessageID, PartID
from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.part import TextPart, ToolPart


class Point(msgspec.Struct, frozen=True):
    """A message, or a part of it: this and everything after it goes."""

    message: MessageID
    part: PartID | None = None


def point(history: Sequence[MessageWithParts], message: str, part: str | None) -> Point:
    """The point that a caller names, in a history in the model's order.

    An answer stands for the prompt that it answers. A part before which its message says nothing stands for
    the whole message.
    """
    at = next((index for index, each in enumerate(history) if each.info.id == message), None)
    if at is None:
        raise NotFound(f"message {message[:60]} does not exist; `holdfast session show` names those that do")
    target = history[at]
    if part is not None:
        ids = [each.id for each in target.parts]
        if part not in ids:
            raise NotFound(f"part {part[:60]} does not exist in message {message[:60]}")
        if any(isinstance(each, TextPart | ToolPart) for each in target.parts[: ids.index(PartID(part))]):
            return Point(target.info.id, PartID(part))
    prompts = [each.info.id for each in history[: at + 1] if isinstance(each.info, UserMessage)]
    return Point(prompts[-1] if prompts else target.info.id)


def last_prompt(history: Sequence[MessageWithParts]) -> MessageID:
    """The last prompt that asked for an answer: not a note, nor a command of the user's own."""
    for each in reversed(history):
        if isinstance(each.info, UserMessage) and not each.info.no_reply and not _is_ours(each):
            return each.info.id
    raise NotFound("the session has no prompt that could be taken back")


def _is_ours(message: MessageWithParts) -> bool:
    """Whether we sent the prompt ourselves: a compaction, or what continues the work after one."""
    return not any(
        isinstance(part, FilePart) or (isinstance(part, TextPart) and not part.synthetic)
        for part in message.parts
    )

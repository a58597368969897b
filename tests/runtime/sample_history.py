"""Messages for tables over a history: prompts, notes, answers, compactions."""

from typing import Any

from msgspec.structs import replace

from holdfast.runtime.history import model_view
from holdfast.schema.message import AssistantMessage, AssistantTime, MessageWithParts, UserMessage
from holdfast.schema.part import CompactionPart, Part
from tests.provider.history import assistant, head, text, user

CLOSED = AssistantTime(created=1, completed=2)
OPEN = AssistantTime(created=1)


def said_by_user(message: MessageWithParts) -> UserMessage:
    """The info of a message that a user wrote."""
    assert isinstance(message.info, UserMessage)
    return message.info


def note(words: str = "by the way") -> MessageWithParts:
    """A user's message that wants no answer."""
    message = user(words)
    return MessageWithParts(replace(said_by_user(message), no_reply=True), message.parts)


def compaction(*, auto: bool = True, **fields: Any) -> MessageWithParts:
    """A request to compact."""
    return user(CompactionPart(**head(), auto=auto, **fields))


def going_on(*marks: str, **metadata: Any) -> MessageWithParts:
    """Our text after a compaction, with which the work goes on."""
    kept = dict.fromkeys((model_view.CONTINUED, *marks), True) | metadata
    return user(text("Go on.", synthetic=True, metadata=kept))


def answer(*parts: Part | str, to: MessageWithParts | None = None, **fields: Any) -> MessageWithParts:
    """An answer of the model to a message; it has ended with `stop` unless the fields say otherwise."""
    made = assistant(*parts)
    assert isinstance(made.info, AssistantMessage)
    given = {"finish": "stop", "time": CLOSED} | fields
    if to is not None:
        given["parent_id"] = to.info.id
    return MessageWithParts(replace(made.info, **given), made.parts)


def summary(to: MessageWithParts, **fields: Any) -> MessageWithParts:
    """What a compaction wrote, or tried to."""
    return answer("A summary.", to=to, summary=True, **fields)

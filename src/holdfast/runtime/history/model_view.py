"""The model view: which stored messages the model sees, in which order. Pure.

After a compaction that is the summary, then the tail that was kept word for word, then everything since.
Failed compactions are left out, and so are earlier summaries, which the last one includes. System messages of
former epochs stay stored and are no longer shown.
"""

from collections.abc import Sequence
from typing import Final

from holdfast.schema.message import AssistantMessage, MessageWithParts, SystemMessage, UserMessage
from holdfast.schema.part import CompactionPart, TextPart

CONTINUED: Final = "compaction_continue"
"""In the metadata of a text of ours that continues the user's prompt after a compaction."""
RESTS: Final = "compaction_rests"
"""With it: the work rested when it was compacted, and continues only for a prompt or `resume`."""


def compaction_of(message: MessageWithParts) -> CompactionPart | None:
    """The request to compact that a message holds, if any."""
    if not isinstance(message.info, UserMessage):
        return None
    return next((part for part in message.parts if isinstance(part, CompactionPart)), None)


def is_summary(message: MessageWithParts) -> bool:
    """Whether a compaction wrote the message, or tried to."""
    return isinstance(message.info, AssistantMessage) and bool(message.info.summary)


def is_finished_summary(message: MessageWithParts) -> bool:
    """Whether the message is the summary of a compaction that was completed."""
    info = message.info
    return (
        isinstance(info, AssistantMessage)
        and bool(info.summary)
        and info.error is None
        and info.time.completed is not None
    )


def is_continuing(message: MessageWithParts, mark: str = CONTINUED) -> bool:
    """Whether a message is the one by which we continue the work after a compaction."""
    return any(isinstance(part, TextPart) and bool((part.metadata or {}).get(mark)) for part in message.parts)


def asked(
    history: Sequence[MessageWithParts], joining: Sequence[MessageWithParts]
) -> MessageWithParts | None:
    """A requested compaction that was not tried yet: it joins now, or nothing came since."""
    now = [each for each in joining if compaction_of(each) is not None]
    if now:
        return now[-1]
    last = next((each for each in reversed(history) if not isinstance(each.info, SystemMessage)), None)
    part = None if last is None or joining else compaction_of(last)
    return None if part is None or part.auto else last


def conversation(history: Sequence[MessageWithParts]) -> list[MessageWithParts]:
    """The conversation in its order, without the messages of compactions."""
    return [each for each in history if compaction_of(each) is None and not is_summary(each)]


def project(history: Sequence[MessageWithParts]) -> list[MessageWithParts]:
    """What the model sees: summary, kept tail, everything since. Without a compaction, the whole history."""
    summary = next((each for each in reversed(history) if is_finished_summary(each)), None)
    if summary is None:
        return conversation(history)
    assert isinstance(summary.info, AssistantMessage)
    asked = next((each for each in history if each.info.id == summary.info.parent_id), None)
    request = None if asked is None else compaction_of(asked)
    if asked is None or request is None:
        return conversation(history)
    end = history.index(asked)
    ids = [each.info.id for each in history]
    begin = ids.index(request.tail_start_id) if request.tail_start_id in ids else end
    kept, since = history[begin:end], history[history.index(summary) + 1 :]
    between = history[end + 1 : history.index(summary)]
    return [asked, summary, *conversation(kept), *conversation(between), *conversation(since)]

"""What tests about recovery share."""

from holdfast.schema.message import AssistantMessage, MessageWithParts


def await_open(messages: tuple[MessageWithParts, ...]) -> list[str]:
    """What is still open."""
    open_: list[str] = []
    for message in messages:
        info = message.info
        if isinstance(info, AssistantMessage) and info.time.completed is None:
            open_.append(info.id)
        for part in message.parts:
            time = getattr(part, "time", None)
            if time is not None and getattr(time, "end", 0) is None:
                open_.append(part.id)
    return open_

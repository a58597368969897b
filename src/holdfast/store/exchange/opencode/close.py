"""Ends what the source left open: nothing will ever finish it here.

An open record means that there is something to recover, and recovery may go on with the session by itself.
What another program broke off, perhaps months ago, must not come to life because it was imported. What a tool
call did before it was cut off is unknown.
"""

from typing import Final

from msgspec.structs import replace

from holdfast.schema.fault import AbortedFault, MessageData
from holdfast.schema.message import AssistantMessage, Message
from holdfast.schema.part import Part, ReasoningPart, TextPart, ToolPart
from holdfast.schema.tool_state import Ended, ToolError, ToolPending, ToolRunning

ABORTED: Final = "OpenCode never finished this message"
UNKNOWN: Final = "The tool call was cut off: OpenCode never recorded how it ended"


def close(message: Message, parts: list[Part]) -> tuple[Message, list[Part]]:
    """The message and its parts, with nothing left to happen."""
    closed = [_part(part, message.time.created) for part in parts]
    if not isinstance(message, AssistantMessage) or message.time.completed is not None:
        return message, closed
    ended = max([message.time.created, *map(_end, closed)])
    error = message.error or AbortedFault(data=MessageData(message=ABORTED))
    return replace(message, time=replace(message.time, completed=ended), error=error), closed


def _part(part: Part, created: int) -> Part:
    match part:
        case ToolPart(state=ToolPending() | ToolRunning() as state):
            start = state.time.start if isinstance(state, ToolRunning) else created
            had = (state.metadata if isinstance(state, ToolRunning) else None) or {}
            made = ToolError(
                input=state.input,
                error=UNKNOWN,
                metadata={**had, "outcome": "unknown", "interrupted": True},
                time=Ended(start=start, end=start),
            )
            return replace(part, state=made)
        case TextPart() | ReasoningPart() if part.time is not None and part.time.end is None:
            return replace(part, time=replace(part.time, end=part.time.start))
        case _:
            return part


def _end(part: Part) -> int:
    match part:
        case TextPart() | ReasoningPart():
            return (part.time.end or 0) if part.time is not None else 0
        case ToolPart():
            return getattr(getattr(part.state, "time", None), "end", 0)
        case _:
            return 0

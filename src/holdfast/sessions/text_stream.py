"""The text of a turn, piece by piece, made of its events. Pure but for the last function.

A part's text comes as deltas, as the whole part so far (a late joiner, a checkpoint, the end), or as both:
whatever comes, each character is given once and none is left out.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from holdfast.feed.frame import Frame
from holdfast.schema.event import Event, MessageUpdated, PartDelta, PartUpdated
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import Part, TextPart

APART = "\n\n"
"""Between two text parts, as in `MessageWithParts.text`."""


class TextStream:
    """What of a session's answers has been given so far."""

    def __init__(self) -> None:
        self._answers: set[str] = set()
        self._given: dict[str, int] = {}
        """Characters by text part."""
        self._last: str | None = None

    def take(self, event: Event | None) -> str:
        """The text that an event adds; often none."""
        match event:
            case MessageUpdated(properties=properties) if isinstance(properties.info, AssistantMessage):
                if not properties.info.summary:
                    self._answers.add(properties.info.id)
            case PartUpdated(properties=properties) if properties.part.message_id in self._answers:
                return self._whole(properties.part)
            case PartDelta(properties=delta) if delta.part_id in self._given and delta.field == "text":
                return self._add(delta.part_id, delta.offset, delta.delta)
            case _:
                pass
        return ""

    def _whole(self, part: Part) -> str:
        if not isinstance(part, TextPart) or part.synthetic:
            return ""
        self._given.setdefault(part.id, 0)
        return self._add(part.id, 0, part.text)

    def _add(self, part: str, offset: int, text: str) -> str:
        """What is new of a text that begins at an offset; nothing of one behind a gap: the part follows."""
        given = self._given[part]
        new = text[given - offset :] if offset <= given else ""
        if not new:
            return ""
        self._given[part] = given + len(new)
        lead = APART if self._last not in (None, part) else ""
        self._last = part
        return lead + new


async def pieces(frames: AsyncGenerator[Frame, None]) -> AsyncGenerator[str, None]:
    """The text of the answers among the frames of a turn."""
    stream = TextStream()
    async with aclosing(frames) as events:
        async for frame in events:
            if piece := stream.take(frame.event()):
                yield piece

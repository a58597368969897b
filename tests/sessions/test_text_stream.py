"""The text of a turn out of its events: a table of what may come, and in which order."""

from typing import Any

import pytest

from holdfast import (
    Event,
    Message,
    MessageUpdated,
    Part,
    PartDelta,
    PartUpdated,
    ReasoningPart,
    TextPart,
)
from holdfast.schema.event import DeltaProperties, MessageProperties, PartProperties
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import AssistantMessage, AssistantPath, AssistantTime, UserMessage
from holdfast.schema.model import ModelRef
from holdfast.schema.times import Created, Span
from holdfast.schema.usage import ZERO
from holdfast.sessions.text_stream import TextStream

SESSION = SessionID("ses_1")


def message(id: str, *, summary: bool | None = None) -> MessageUpdated:
    info: Message
    if id == "user":
        info = UserMessage(
            id=MessageID(id),
            session_id=SESSION,
            time=Created(created=1),
            agent="build",
            model=ModelRef(provider_id="p", model_id="m"),
        )
    else:
        info = AssistantMessage(
            id=MessageID(id),
            session_id=SESSION,
            time=AssistantTime(created=1),
            parent_id=MessageID("user"),
            model_id="m",
            provider_id="p",
            mode="build",
            agent="build",
            path=AssistantPath(cwd="/", root="/"),
            cost=0,
            tokens=ZERO,
            summary=summary,
        )
    return MessageUpdated(properties=MessageProperties(session_id=SESSION, info=info))


def part(value: Part) -> PartUpdated:
    return PartUpdated(properties=PartProperties(session_id=SESSION, part=value, time=1))


def text(id: str, said: str, of: str = "one", **marks: Any) -> PartUpdated:
    return part(TextPart(id=PartID(id), session_id=SESSION, message_id=MessageID(of), text=said, **marks))


def thought(id: str, of: str = "one") -> PartUpdated:
    return part(
        ReasoningPart(
            id=PartID(id), session_id=SESSION, message_id=MessageID(of), text="hm", time=Span(start=1)
        )
    )


def delta(id: str, offset: int, said: str, field: str = "text") -> PartDelta:
    return PartDelta(
        properties=DeltaProperties(
            session_id=SESSION,
            message_id=MessageID("one"),
            part_id=PartID(id),
            field=field,
            offset=offset,
            delta=said,
        )
    )


ONE, TWO = message("one"), message("two")


@pytest.mark.parametrize(
    ("events", "pieces"),
    [
        ([ONE, text("a", ""), delta("a", 0, "He"), delta("a", 2, "y"), text("a", "Hey")], ["He", "y"]),
        (
            [ONE, text("a", "He"), delta("a", 0, "He"), delta("a", 1, "ey"), text("a", "Hey.")],
            ["He", "y", "."],
        ),
        ([ONE, text("a", "He"), delta("a", 5, "later"), text("a", "Hey, later")], ["He", "y, later"]),
        ([delta("a", 0, "of a part that is not known"), None], []),
        ([message("user"), text("a", "the prompt itself", of="user")], []),
        ([message("one", summary=True), text("a", "a summary")], []),
        ([ONE, text("a", "for the model", synthetic=True)], []),
        ([ONE, thought("t"), delta("t", 0, "hm"), text("a", "So.")], ["So."]),
        ([ONE, text("a", "x"), delta("a", 0, "title", field="title")], ["x"]),
        ([ONE, text("a", "One."), text("b", ""), text("c", "Two.")], ["One.", "\n\nTwo."]),
        ([ONE, text("a", "Look."), thought("t"), text("b", "Done.")], ["Look.", "\n\nDone."]),
        ([ONE, text("a", "Look"), thought("t"), text("a", "Look.")], ["Look", "."]),
        ([ONE, text("a", "1"), thought("t"), TWO, text("b", "2", of="two"), text("a", "1")], ["1", "\n\n2"]),
    ],
)
def test_each_character_is_given_once(events: list[Event | None], pieces: list[str]) -> None:
    """Deltas, whole parts, both, late, or behind a gap; nothing that is not said to the reader."""
    stream = TextStream()

    assert [piece for event in events if (piece := stream.take(event))] == pieces

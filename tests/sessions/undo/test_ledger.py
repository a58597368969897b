"""In which order sessions changed files, and from when on: pure."""

from typing import Any

import pytest

from holdfast.runtime.history.file_changes import FILES
from holdfast.schema import usage
from holdfast.schema.file_change import FileChange
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import (
    AssistantMessage,
    AssistantPath,
    AssistantTime,
    MessageWithParts,
    UserMessage,
)
from holdfast.schema.model import ModelRef
from holdfast.schema.part import Part, StepStartPart, ToolPart
from holdfast.schema.times import Created
from holdfast.schema.tool_state import Completed, ToolCompleted
from holdfast.sessions.undo import ledger
from holdfast.sessions.undo.ledger import Entry
from holdfast.sessions.undo.point import Point

S = SessionID("ses_1")


def user(id: str, ms: int) -> MessageWithParts:
    model = ModelRef(provider_id="p", model_id="m")
    info = UserMessage(id=MessageID(id), session_id=S, time=Created(created=ms), agent="a", model=model)
    return MessageWithParts(info, ())


def answer(id: str, ms: int, end_ms: int, *parts: Part) -> MessageWithParts:
    info = AssistantMessage(
        id=MessageID(id),
        session_id=S,
        time=AssistantTime(created=ms, completed=end_ms),
        parent_id=MessageID("u"),
        model_id="m",
        provider_id="p",
        mode="a",
        agent="a",
        path=AssistantPath(cwd="/", root="/"),
        cost=0,
        tokens=usage.ZERO,
    )
    return MessageWithParts(info, parts)


def call(id: str, ms: int, tool: str = "edit", **metadata: Any) -> ToolPart:
    state = ToolCompleted(
        input={}, output="", title="", metadata=metadata, time=Completed(start=ms, end=ms + 1)
    )
    return ToolPart(
        id=PartID(id), session_id=S, message_id=MessageID("m"), call_id="c", tool=tool, state=state
    )


HISTORY = [
    user("u1", 100),
    answer("a1", 110, 150, call("p1", 115), call("p2", 130)),
    user("u2", 120),  # It was admitted while the answer was written.
    answer("a2", 155, 190),
    user("u3", 300),
    answer("a3", 310, 390),
]


@pytest.mark.parametrize(
    ("message", "part", "ms"),
    [
        ("u1", None, 100),
        ("u2", None, 150),
        ("u3", None, 300),
        ("a1", "p1", 115),
        ("a1", "p2", 130),
    ],
)
def test_when_the_work_after_a_point_began(message: str, part: str | None, ms: int) -> None:
    """With the prompt, but not before the end of the answer before it; with the first call from a part on."""
    point = Point(MessageID(message), None if part is None else PartID(part))
    assert ledger.begins_ms(HISTORY, point) == ms


def change(path: str, name: str, *, observed: bool = False) -> FileChange:
    return FileChange(path=path, before=f"{name}0", after=f"{name}1", observed=observed)


def test_what_sessions_did_is_ordered_by_time() -> None:
    """Each session keeps its own order, whatever its clock said."""
    a, b, c, d = (change("f", name) for name in "abcd")
    entries = [
        Entry(10, a, 10, 0, "one"),
        Entry(30, b, 30, 0, "one"),
        Entry(20, c, 20, 1, "two"),
        Entry(15, d, 15, 1, "two"),
    ]
    assert ledger.ordered(entries) == [a, c, d, b]


def test_what_a_step_observed_covers_what_happened_below_it() -> None:
    """A session below changed the same file during the step: its change is part of what was observed."""
    seen, during, other, later = (
        change("f", "s", observed=True),
        change("f", "d"),
        change("g", "o"),
        change("f", "l"),
    )
    entries = [
        Entry(10, seen, 50, 0, "one"),
        Entry(20, during, 20, 1, "two"),
        Entry(20, other, 20, 1, "two"),
        Entry(60, later, 60, 1, "two"),
    ]
    assert ledger.ordered(entries) == [other, seen, later]


@pytest.mark.parametrize(
    ("tool", "left", "notes"),
    [
        ("bash", None, 1),
        ("server_tool", None, 1),
        ("bash", "tree", 0),
        ("edit", None, 0),
        ("read", None, 0),
    ],
)
def test_what_a_step_that_was_cut_off_changed_is_not_known(tool: str, left: str | None, notes: int) -> None:
    """It is said so, unless its tools note by themselves what they do."""
    head: dict[str, Any] = {"id": PartID("p"), "session_id": S, "message_id": MessageID("m")}
    start = StepStartPart(**head, snapshot="tree", left=left)
    message = answer("a", 1, 2, start, call("c", 1, tool, **{FILES: []}))
    found = list(ledger._notes(message))
    assert [f"its calls of {tool} changed" in each for each in found] == [True] * notes

"""The stored form of records, and the marks by which the store finds them."""

from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.errors import InvariantBroken, RecordCorrupt
from holdfast.schema import stored
from holdfast.schema.fault import AbortedFault, MessageData
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import AssistantMessage, AssistantPath, AssistantTime, SystemMessage
from holdfast.schema.part import ReasoningPart, StepStartPart, TextPart, ToolPart
from holdfast.schema.project_records import Trust
from holdfast.schema.prompt import AdmittedPrompt
from holdfast.schema.request import InterruptRequest, RequestTime
from holdfast.schema.session_lists import FileDiff, Share, Todo
from holdfast.schema.stored import Mark, load, mark, strip, whole
from holdfast.schema.times import Created, Span
from holdfast.schema.tool_state import (
    Completed,
    Ended,
    Started,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolRunning,
    ToolState,
)
from holdfast.schema.usage import ZERO
from holdfast.schema.wire import Record, decode

MESSAGE_HEAD: dict[str, Any] = {"id": MessageID("msg_1"), "session_id": SessionID("ses_1")}
PART_HEAD: dict[str, Any] = {
    "id": PartID("prt_1"),
    "session_id": SessionID("ses_1"),
    "message_id": MessageID("msg_1"),
}
COLUMNS = {"id": "prt_1", "session": "ses_1", "parent": "msg_1"}
ASSISTANT = AssistantMessage(
    **MESSAGE_HEAD,
    time=AssistantTime(created=1),
    parent_id=MessageID("msg_0"),
    model_id="m",
    provider_id="p",
    mode="build",
    agent="build",
    path=AssistantPath(cwd="/d", root="/d"),
    cost=0,
    tokens=ZERO,
)
DONE = replace(ASSISTANT, time=AssistantTime(created=1, completed=2))


def tool(state: ToolState) -> ToolPart:
    return ToolPart(**PART_HEAD, call_id="c", tool="t", state=state)


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b'{"type":"poem"}', b'{"type":"text","text":1}', b"[]"])
def test_a_record_that_cannot_be_read_is_named(data: bytes) -> None:
    """RecordCorrupt says which record, and where in it."""
    with pytest.raises(RecordCorrupt) as caught:
        load("part", data, **COLUMNS)

    assert (caught.value.session, caught.value.kind, caught.value.id) == ("ses_1", "part", "prt_1")
    assert str(caught.value).startswith("part prt_1 of session ses_1 cannot be read: ")


def test_a_list_has_no_head_to_strip() -> None:
    """Stripping a value that is no record of the kind is our bug."""
    with pytest.raises(InvariantBroken):
        strip("part", [])


def test_the_head_is_cut_off_and_put_back() -> None:
    """Ids are not in the stored JSON; the tag comes first in it, and the head first in the whole."""
    part = TextPart(**PART_HEAD, text="hi")

    assert strip("part", part) == b'{"type":"text","text":"hi"}'
    assert (
        whole("part", strip("part", part), **COLUMNS)
        == b'{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"hi"}'
    )
    assert load("part", strip("part", part), **COLUMNS) == part


def test_a_record_that_is_all_head_is_an_empty_object() -> None:
    """Nothing but the tag, or nothing at all, is left; the splice has no comma too many."""
    part = StepStartPart(**PART_HEAD)

    assert strip("part", part) == b'{"type":"step-start"}'
    assert load("part", b'{"type":"step-start"}', **COLUMNS) == part
    assert (
        whole("message", b"{}", id="msg_1", session="ses_1", parent=None)
        == b'{"id":"msg_1","sessionID":"ses_1"}'
    )


def test_a_record_of_nothing_but_its_id_leaves_an_empty_object() -> None:
    """No type of ours is so bare today; the cut does not depend on it."""

    class Bare(Record, frozen=True, kw_only=True):
        id: str

    assert strip("trust", Bare(id="t")) == b"{}"


def test_a_record_without_tag_is_cut_at_the_brace() -> None:
    """A record of a scope has its id only, whatever characters it holds."""
    trust = Trust(id='h:/a "b"\\\n', host="h", path="/a", granted=True, time=Created(created=1))

    assert strip("trust", trust) == b'{"host":"h","path":"/a","granted":true,"time":{"created":1}}'
    assert load("trust", strip("trust", trust), id='h:/a "b"\\\n') == trust


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("todo", [Todo(content="c", status="pending", priority="high")]),
        ("todo", []),
        ("diff", [FileDiff(file="a", additions=1, deletions=0)]),
        ("share", Share(id="s", secret="x", url="u")),
    ],
)
def test_what_a_session_has_one_of_is_kept_unchanged(kind: stored.Kind, value: object) -> None:
    """A todo list, a diff and a share have no head: a share's id is its own."""
    data = strip(kind, value)  # type: ignore[arg-type]

    assert whole(kind, data, id="ses_1", session="ses_1") == data
    assert load(kind, data, id="ses_1", session="ses_1") == value


def test_unknown_fields_are_stored() -> None:
    """The stored form has the unknown fields, even one that is named like a column of another kind."""
    data = (
        b'{"id":"ses_1","sessionID":"odd","messageID":"odd",'
        b'"host":"h","path":"/","granted":false,"time":{"created":1}}'
    )
    trust = decode(Trust, data)
    kept = strip("trust", trust)

    assert (
        kept
        == b'{"host":"h","path":"/","granted":false,"time":{"created":1},"sessionID":"odd","messageID":"odd"}'
    )
    assert load("trust", kept, id="ses_1") == trust


def test_every_kind_has_a_head_and_a_type() -> None:
    """The tables speak of the same kinds, in the same order."""
    assert tuple(stored.HEADS) == stored.KINDS
    assert all(stored.type_of(kind) for kind in stored.KINDS)
    assert stored.HEADS["part"] == ("id", "sessionID", "messageID")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (tool(ToolPending(input={}, raw="")), Mark.OPEN),
        (tool(ToolRunning(input={}, time=Started(start=1))), Mark.OPEN),
        (
            tool(ToolCompleted(input={}, output="", title="", metadata={}, time=Completed(start=1, end=2))),
            Mark.NONE,
        ),
        (tool(ToolError(input={}, error="e", time=Ended(start=1, end=2))), Mark.NONE),
        (TextPart(**PART_HEAD, text=""), Mark.NONE),
        (TextPart(**PART_HEAD, text="", time=Span(start=1)), Mark.OPEN),
        (TextPart(**PART_HEAD, text="", time=Span(start=1, end=1)), Mark.NONE),
        (ReasoningPart(**PART_HEAD, text="", time=Span(start=1)), Mark.OPEN),
        (ReasoningPart(**PART_HEAD, text="", time=Span(start=1, end=0)), Mark.NONE),
        (StepStartPart(**PART_HEAD), Mark.NONE),
        (ASSISTANT, Mark.OPEN),
        (replace(ASSISTANT, summary=True), Mark.OPEN),
        (DONE, Mark.NONE),
        (replace(DONE, summary=False), Mark.NONE),
        (replace(DONE, summary=True), Mark.SUMMARY),
        (replace(DONE, summary=True, error=AbortedFault(data=MessageData(message=""))), Mark.NONE),
        (SystemMessage(**MESSAGE_HEAD, time=Created(created=1), text="t"), Mark.SYSTEM),
        (
            AdmittedPrompt(**MESSAGE_HEAD, parts=[], delivery="steer", time=Created(created=1)),
            Mark.OPEN,
        ),
        (
            AdmittedPrompt(**MESSAGE_HEAD, parts=[], delivery="queue", time=Created(created=1), promoted=0),
            Mark.NONE,
        ),
        (InterruptRequest(id="i", session_id=SessionID("s"), time=RequestTime(created=1)), Mark.OPEN),
        (
            InterruptRequest(id="i", session_id=SessionID("s"), time=RequestTime(created=1, answered=2)),
            Mark.NONE,
        ),
        ([Todo(content="c", status="pending", priority="high")], Mark.NONE),
    ],
)
def test_marks(value: object, expected: Mark) -> None:
    """OPEN while something is still to happen, SUMMARY for a compaction that succeeded, SYSTEM for what only
    the model is told, else NONE.
    """
    assert mark(value) is expected  # type: ignore[arg-type]


def test_every_mark_fits_two_bits() -> None:
    """PostgreSQL is given a record's mark as two bits of a number: there is no room for a fifth."""
    assert [int(each) for each in Mark] == [0, 1, 2, 3]

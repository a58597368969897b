"""The ledger of file changes, from the records of calls."""

from typing import Any

from holdfast.runtime.history import file_changes
from holdfast.schema.file_change import FileChange
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.part import Part, PatchPart, ToolPart
from holdfast.schema.tool_state import Completed, Started, ToolCompleted, ToolRunning
from holdfast.schema.wire import encode

HEAD: Any = {"id": PartID("prt_1"), "session_id": SessionID("ses_1"), "message_id": MessageID("msg_1")}


def change(path: str, before: str | None, after: str | None, **more: Any) -> FileChange:
    return FileChange(path=path, before=before, after=after, **more)


def call(*changes: FileChange, over: bool = True) -> ToolPart:
    metadata = {file_changes.FILES: [as_json(each) for each in changes]}
    state = (
        ToolCompleted(input={}, output="", title="", metadata=metadata, time=Completed(start=1, end=2))
        if over
        else ToolRunning(input={}, metadata=metadata, time=Started(start=1))
    )
    return ToolPart(**HEAD, call_id="c", tool="edit", state=state)


def as_json(value: FileChange) -> Any:
    import msgspec

    return msgspec.json.decode(encode(value))


def patch(*changes: FileChange) -> Part:
    return PatchPart(**HEAD, hash="t", files=[each.path for each in changes], changes=list(changes))


def test_calls_that_ended_and_calls_that_did_not() -> None:
    """Both count: a change is noted before it is made. What cannot be read counts for nothing."""
    one, two = change("/a", "1", "2"), change("/b", None, "3")
    bad = call(one)
    assert isinstance(bad.state, ToolCompleted)
    bad.state.metadata[file_changes.FILES][0]["path"] = 7

    assert file_changes.of_parts([call(one), call(two, over=False), bad]) == [one, two]


def test_what_was_observed_stands_for_the_whole_step() -> None:
    """It takes the place of what calls of the step noted about the same file, and of no other."""
    seen = change("/a", "1", "9", observed=True)

    assert file_changes.of_parts([call(change("/a", "1", "2"), change("/b", "5", "6")), patch(seen)]) == [
        change("/b", "5", "6"),
        seen,
    ]


def test_changes_without_a_gap_are_one() -> None:
    """A file that did not hold what the agent had left was changed by somebody else: that is a gap."""
    steps = [
        change("/a", None, "1", after_mode=0o100644),
        change("/b", "5", "6"),
        change("/a", "1", "2", before_mode=0o100644, after_mode=0o100755),
        change("/a", "4", None, observed=True),
        change("/b", "6", "5"),
    ]

    assert file_changes.joined(steps) == [
        change("/a", None, "2", after_mode=0o100755),
        change("/a", "4", None, observed=True),
    ]

"""When identical calls are a loop: a table."""

from typing import Any

import pytest

from holdfast.runtime import repetition
from holdfast.runtime.repetition import Made
from holdfast.schema.file_part import FilePart
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import Completed, Ended, Started, ToolCompleted, ToolError, ToolRunning


def part(state: Any, tool: str = "act") -> ToolPart:
    return ToolPart(id="prt_1", session_id="ses_1", message_id="msg_1", call_id="c", tool=tool, state=state)  # type: ignore[arg-type]


def done(output: str, what: str = "x", **metadata: Any) -> Made:
    times = Completed(start=0, end=1)
    state = ToolCompleted(input={"what": what}, output=output, title="", metadata=metadata, time=times)
    return repetition.made(part(state))


def failed(error: str, outcome: str = "failed") -> Made:
    state = ToolError(
        input={"what": "x"}, error=error, metadata={"outcome": outcome}, time=Ended(start=0, end=1)
    )
    return repetition.made(part(state))


def pictured(url: str) -> Made:
    file = FilePart(id="prt_2", session_id="ses_1", message_id="msg_1", mime="image/png", url=url)  # type: ignore[arg-type]
    times = Completed(start=0, end=1)
    state = ToolCompleted(
        input={"what": "x"}, output="", title="", metadata={}, time=times, attachments=[file]
    )
    return repetition.made(part(state))


RUNNING = part(ToolRunning(input={"what": "x"}, time=Started(start=0)))
CARRIED = Made(None, "act", {"what": "x"}, None, done("same").answer, 4)


@pytest.mark.parametrize(
    ("before", "count"),
    [
        ([], 1),
        ([done("a"), done("a")], 3),
        ([done("a"), done("b")], 2),
        ([done("b"), done("a"), done("a")], 3),
        ([done("a"), done("a", what="y"), done("a")], 2),
        ([failed("no"), failed("no")], 3),
        ([failed("no"), failed("not yet")], 2),
        ([done("a"), done("a"), failed("You called act 3 times", "denied")], 4),
        ([repetition.made(RUNNING), repetition.made(RUNNING)], 3),
        ([done("in /t/1", outputPaths=["/t/1"]), done("in /t/2", outputPaths=["/t/2"])], 3),
        ([pictured("data:a"), pictured("data:b")], 2),
        ([CARRIED, done("same")], 6),
        ([CARRIED, done("other")], 2),
        ([Made(None, "act", {"what": "x"}), done("any")], 3),
    ],
)
def test_how_often_a_call_was_made_in_a_row(before: list[Made], count: int) -> None:
    """Calls that were not run, or have not answered, tell nothing and count; other answers end the row."""
    assert repetition.repeated(before, RUNNING) == count

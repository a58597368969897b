"""When identical calls are a loop: a table."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from holdfast.runtime.calls import repetition
from holdfast.runtime.calls.repetition import Made
from holdfast.runtime.history.carried import Carried, CarriedCall
from holdfast.schema.file_part import FilePart
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import TextPart, ToolPart
from holdfast.schema.tool_state import Completed, Ended, Started, ToolCompleted, ToolError, ToolRunning

NUMBERS = count()


def part(state: Any, message: str | None = None) -> ToolPart:
    """A call, in an answer of its own unless it is named."""
    message = message or f"msg_{next(NUMBERS)}"
    return ToolPart(id="prt_1", session_id="ses_1", message_id=message, call_id="c", tool="act", state=state)  # type: ignore[arg-type]


def done(output: str, what: str = "x", message: str | None = None, **metadata: Any) -> Made:
    times = Completed(start=0, end=1)
    state = ToolCompleted(input={"what": what}, output=output, title="", metadata=metadata, time=times)
    return repetition.made(part(state, message))


def failed(error: str, outcome: str = "failed", message: str | None = None, **metadata: Any) -> Made:
    metadata = {"outcome": outcome, **metadata}
    state = ToolError(input={"what": "x"}, error=error, metadata=metadata, time=Ended(start=0, end=1))
    return repetition.made(part(state, message))


def pair(message: str, beside: str = "b") -> list[Made]:
    """The call and another one, in one answer."""
    return [done("a", message=message), done(beside, what="y", message=message)]


def running(message: str | None = None) -> ToolPart:
    return part(ToolRunning(input={"what": "x"}, time=Started(start=0)), message)


def refused(message: str | None = None) -> Made:
    return failed("You called act 3 times", "denied", message, doom_loop=3)


def pictured(url: str) -> Made:
    file = FilePart(id="prt_2", session_id="ses_1", message_id="msg_1", mime="image/png", url=url)  # type: ignore[arg-type]
    times = Completed(start=0, end=1)
    state = ToolCompleted(
        input={"what": "x"}, output="", title="", metadata={}, time=times, attachments=[file]
    )
    return repetition.made(part(state))


RUNNING = running("now")
CARRIED = Made(None, None, "act", {"what": "x"}, None, done("same").answer, 4)


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
        ([repetition.made(running()), repetition.made(running())], 3),
        ([repetition.made(RUNNING), repetition.made(RUNNING)], 1),
        ([done("a"), repetition.made(RUNNING), repetition.made(RUNNING)], 2),
        ([done("a"), done("a", message="m"), done("a", message="m"), repetition.made(RUNNING)], 3),
        ([done("a"), done("a", message="m"), done("b", message="m")], 2),
        ([done("a"), done("a", what="y", message="now")], 1),
        ([*pair("1"), *pair("2")], 3),
        ([*pair("1"), *pair("2"), done("b", what="y", message="now")], 3),
        ([*reversed(pair("1")), *pair("2")], 3),
        ([done("a"), *pair("1"), *pair("2")], 3),
        ([*pair("1"), *pair("2"), done("a")], 4),
        ([*pair("1", "new"), *pair("2", "newer")], 2),
        ([*pair("1"), done("b", what="y"), *pair("2")], 2),
        ([done("a"), done("b", what="y"), done("a"), done("b", what="y")], 1),
        ([done("in /t/1", outputPaths=["/t/1"]), done("in /t/2", outputPaths=["/t/2"])], 3),
        ([failed("in /t/1", outputPaths=["/t/1"]), failed("in /t/2", outputPaths=["/t/2"])], 3),
        ([pictured("data:a"), pictured("data:b")], 2),
        ([CARRIED, done("same")], 6),
        ([CARRIED, done("other")], 2),
        ([Made(None, None, "act", {"what": "x"}), done("any")], 3),
    ],
)
def test_how_often_a_call_was_made_in_a_row(before: list[Made], count: int) -> None:
    """Calls that were not run, or have not answered, tell nothing and count; other answers end the row, and
    so does a call beside it that is new or has a new answer. Those of one answer count once.
    """
    assert repetition.repeated(before, RUNNING).times == count


@pytest.mark.parametrize(
    ("before", "known"),
    [
        ([done("a"), done("a")], False),
        ([done("a"), done("a"), refused()], True),
        ([done("a"), done("a"), refused(message="now")], False),
        ([done("a"), done("a"), failed("no", "denied")], False),
        ([refused(), done("a", what="y"), done("a")], False),
        ([replace(CARRIED, carried_refused=True)], True),
    ],
)
def test_a_model_knows_of_a_refusal_that_stands_in_an_earlier_answer(before: list[Made], known: bool) -> None:
    """Not of one in the answer that it is still giving, nor is each denial one of a loop."""
    assert repetition.repeated(before, RUNNING).refused is known


def test_what_is_carried_over_a_compaction_counts_like_what_it_stands_for() -> None:
    """Calls of one answer once, other answers apart, a refusal kept."""
    calls = [
        [done("a", message="1"), done("b", message="1")],
        [done("b", message="2"), done("b", message="2")],
        [refused(message="3"), refused(message="3")],
    ]
    history = [
        MessageWithParts(None, tuple(part(each.state, each.message) for each in answer))  # type: ignore[arg-type]
        for answer in calls
    ]
    a, b = done("a").answer, done("b").answer
    assert repetition.carried(history) == [
        CarriedCall("act", {"what": "x"}, a, 1),
        CarriedCall("act", {"what": "x"}, b, 1, beside=True),
        CarriedCall("act", {"what": "x"}, b, 2, refused=True),
    ]


def test_two_calls_in_each_answer_are_counted_over_two_compactions() -> None:
    """Answers that repeat one another are carried as one, in whatever order they hold their calls."""
    answers = [pair("1"), pair("2"), [*reversed(pair("3"))]]
    history = [
        MessageWithParts(None, tuple(part(each.state, each.message) for each in answer))  # type: ignore[arg-type]
        for answer in answers
    ]
    kept = repetition.carried(history)
    assert [(each.input["what"], each.times, each.beside) for each in kept] == [
        ("x", 3, False),
        ("y", 3, True),
    ]
    note = TextPart(
        id=PartID("prt_3"),
        session_id=SessionID("ses_1"),
        message_id=MessageID("msg_1"),
        text="",
        metadata=Carried(calls=tuple(kept)).metadata(),
    )
    compacted = MessageWithParts(None, (note,))  # type: ignore[arg-type]
    before = repetition.calls_since_prompt([compacted, *history[:1]])

    assert repetition.repeated(before, RUNNING).times == 5
    assert [each.times for each in repetition.carried([compacted, *history[:1]])] == [4, 4]


class Counted:
    """A path that counts how often somebody looks at it."""

    looks = 0

    def __str__(self) -> str:
        Counted.looks += 1
        return "/t/1"


def test_of_the_paths_that_a_tool_names_only_a_few_are_looked_for() -> None:
    """Each takes a pass over the whole output, and the event loop waits: 20,000 were seconds."""
    assert done("in /t/1", outputPaths=[Counted()] * 20_000).answer == done("in ").answer
    assert Counted.looks == repetition.PATHS_MAX

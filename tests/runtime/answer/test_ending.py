"""The records of an answer that ends: one row a way, whole values compared."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import count

from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.provider.catalog.cost import Cost
from holdfast.runtime.answer import ending
from holdfast.runtime.answer.ending import Ending, as_interrupted, as_left
from holdfast.runtime.budget.spending import Used
from holdfast.runtime.engine.recorder import Ids
from holdfast.schema import stored
from holdfast.schema.fault import AbortedFault, MessageData, UnknownData, UnknownFault
from holdfast.schema.ids import MessageID, Mint, PartID, SessionID
from holdfast.schema.message import (
    AssistantMessage,
    AssistantPath,
    AssistantTime,
    MessageWithParts,
    SystemMessage,
)
from holdfast.schema.part import Part, StepFinishPart, TextPart, ToolPart
from holdfast.schema.times import Created, Span
from holdfast.schema.tool_state import Started, ToolPending, ToolRunning
from holdfast.schema.usage import ZERO, Tokens
from holdfast.store.batch import Put

S, M = SessionID("ses_1"), MessageID("msg_1")
NOW = 900
FAULT = UnknownFault(data=UnknownData(message="broken"))
OPEN = AssistantMessage(
    id=M,
    session_id=S,
    time=AssistantTime(created=100),
    parent_id=MessageID("msg_0"),
    model_id="m",
    provider_id="p",
    mode="build",
    agent="build",
    path=AssistantPath(cwd="/", root="/"),
    cost=0,
    tokens=ZERO,
)
DONE = replace(OPEN, finish="tool-calls", time=AssistantTime(created=100, completed=500))
TOKENS = Tokens(input=3, output=2, reasoning=0, cache=ZERO.cache)


def ids() -> Ids:
    """Ids that say in which order they were made."""
    numbers: Iterator[int] = count(1)
    return Ids(lambda prefix: f"{prefix}_new{next(numbers)}")


def closed(info: AssistantMessage, how: Ending, *parts: Part) -> list[object]:
    """What is written, as values again."""
    puts = ending.closed(MessageWithParts(info, parts), how, ids(), NOW, Mint(SystemClock()))
    return [value_of(put) for put in puts]


def value_of(put: Put) -> object:
    return stored.load(put.kind, put.data, put.id, put.session, put.parent)


def call(id: str, *, begun: bool) -> ToolPart:
    state = ToolRunning(input={}, time=Started(start=200)) if begun else ToolPending(input={}, raw="")
    return ToolPart(id=PartID(id), session_id=S, message_id=M, call_id=id, tool="act", state=state)


def text(id: str, end: int | None) -> TextPart:
    return TextPart(id=PartID(id), session_id=S, message_id=M, text="half", time=Span(start=150, end=end))


def test_what_the_ending_does_not_say_stays() -> None:
    """The finish, the error, the structured output, the cost and the time of an answer that had ended."""
    info = replace(DONE, error=FAULT, structured={"a": 1}, cost=2.0, tokens=TOKENS)

    assert ending.ended(MessageWithParts(info, ()), Ending(), NOW) == info


def test_an_answer_that_is_open_is_completed_now() -> None:
    """With whatever the ending says."""
    used = Used(turn=M, tokens=TOKENS, cost=Cost(amount=Decimal("0.5"), known=True), time_ms=1)
    how = Ending(finish="stop", error=FAULT, structured={"a": 1}, used=used)

    assert ending.ended(MessageWithParts(OPEN, ()), how, NOW) == replace(
        OPEN,
        finish="stop",
        error=FAULT,
        structured={"a": 1},
        cost=0.5,
        tokens=TOKENS,
        time=AssistantTime(created=100, completed=NOW),
    )


def test_nothing_is_written_for_what_does_not_change() -> None:
    """An answer that had ended, its texts and calls closed."""
    assert closed(DONE, Ending(settles=as_left), text("prt_1", 300)) == []


def test_texts_are_closed_before_calls_before_the_step_before_the_message_before_the_note() -> None:
    """A client that follows sees the answer end with its message."""
    used = Used(turn=M, tokens=TOKENS, cost=Cost(amount=Decimal(0), known=False), time_ms=1)
    how = Ending(finish="stop", used=used, reason="stop", note="Go on.", settles=as_interrupted)
    open_text, running = text("prt_1", None), call("prt_2", begun=True)

    found = closed(OPEN, how, open_text, running, text("prt_3", 300))

    assert found[0] == replace(open_text, time=Span(start=150, end=NOW))
    assert isinstance(found[1], ToolPart)
    assert found[2:] == [
        StepFinishPart(
            id=PartID("prt_new1"),
            session_id=S,
            message_id=M,
            reason="stop",
            cost=0,
            cost_known=False,
            tokens=TOKENS,
        ),
        replace(OPEN, finish="stop", tokens=TOKENS, time=AssistantTime(created=100, completed=NOW), cost=0.0),
        SystemMessage(id=MessageID("msg_new2"), session_id=S, time=Created(created=NOW), text="Go on."),
    ]


def test_how_open_calls_are_settled() -> None:
    """A call of a dead runner that had begun is unknown; one that had not, and one that was stopped, are
    interrupted; calls that wait are left.
    """

    def outcomes(how: Ending) -> list[object]:
        found = closed(DONE, how, call("prt_1", begun=True), call("prt_2", begun=False))
        return [each.state.metadata["outcome"] for each in found if isinstance(each, ToolPart)]  # type: ignore[index]

    assert outcomes(Ending(settles=as_left)) == ["unknown", "interrupted"]
    assert outcomes(Ending(settles=as_interrupted)) == ["interrupted", "interrupted"]
    assert outcomes(Ending()) == []


def test_the_named_ways() -> None:
    """A failure ends the work; an answer that broke off is still owed."""
    aborted = AbortedFault(data=MessageData(message="stopped"))

    assert ending.failed(aborted) == Ending(finish="error", error=aborted)
    assert ending.broken_off("note") == Ending(finish="unknown", note="note")

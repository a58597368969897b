"""The tool state machine: every pair of states, legal or not."""

from itertools import product

import pytest
from msgspec.structs import replace

from holdfast.errors import Conflict
from holdfast.schema.tool_state import (
    TRANSITIONS,
    Completed,
    Ended,
    Started,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolRunning,
    ToolState,
    advance,
)

PENDING = ToolPending(input={}, raw="")
RUNNING = ToolRunning(input={"a": 1}, time=Started(start=1))
COMPLETED = ToolCompleted(input={"a": 1}, output="o", title="t", metadata={}, time=Completed(start=1, end=2))
ERROR = ToolError(input={"a": 1}, error="e", time=Ended(start=1, end=2))
STATES: dict[str, ToolState] = {
    "pending": PENDING,
    "running": RUNNING,
    "completed": COMPLETED,
    "error": ERROR,
}
LEGAL = {
    ("pending", "pending"),
    ("pending", "running"),
    ("pending", "error"),
    ("running", "running"),
    ("running", "completed"),
    ("running", "error"),
    ("completed", "completed"),
    ("error", "error"),
}


@pytest.mark.parametrize(("old", "new"), sorted(set(product(STATES, STATES)) - LEGAL))
def test_an_illegal_transition_is_a_conflict(old: str, new: str) -> None:
    """What is not in the table is an error, not a silent write."""
    with pytest.raises(Conflict, match=old):
        advance(STATES[old], STATES[new])


@pytest.mark.parametrize(("old", "new"), sorted(LEGAL))
def test_a_legal_transition_gives_the_new_state(old: str, new: str) -> None:
    """Pending and running may be written again, a settled state only unchanged."""
    assert STATES[new] == advance(STATES[old], STATES[new])


@pytest.mark.parametrize(
    "new",
    [
        replace(COMPLETED, output="other"),
        replace(COMPLETED, output="other", time=Completed(start=1, end=2, compacted=3)),
        replace(COMPLETED, time=Completed(start=1, end=3)),
        replace(COMPLETED, metadata={"more": 1}),
    ],
)
def test_a_completed_call_does_not_change(new: ToolCompleted) -> None:
    """A call is settled exactly once."""
    with pytest.raises(Conflict, match="already settled"):
        advance(COMPLETED, new)


def test_a_failed_call_does_not_change() -> None:
    """Nor does one that ended in an error."""
    with pytest.raises(Conflict, match="already settled"):
        advance(ERROR, replace(ERROR, error="other"))


def test_pruning_may_mark_a_completed_call_once() -> None:
    """`time.compacted` may be gained, but not changed or lost."""
    marked = replace(COMPLETED, time=Completed(start=1, end=2, compacted=3))

    assert marked == advance(COMPLETED, marked)
    assert marked == advance(marked, marked)
    for other in (COMPLETED, replace(COMPLETED, time=Completed(start=1, end=2, compacted=4))):
        with pytest.raises(Conflict, match="already settled"):
            advance(marked, other)


def test_the_table_speaks_of_every_state() -> None:
    """Four states, each with its successors."""
    assert set(TRANSITIONS) == {type(state) for state in STATES.values()}

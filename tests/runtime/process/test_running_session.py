"""What is left of a session's work, however its last drain ended."""

from typing import Any

import pytest

from holdfast.errors import HoldfastError, InvariantBroken, LeaseLost, StoreBusy
from holdfast.runtime.process.due import CutOff, Due
from holdfast.runtime.process.running_session import RunningSession
from holdfast.runtime.user_command import UserCommand
from holdfast.schema.ids import MessageID

BUSY, LOST, BUG = StoreBusy("away"), LeaseLost("lost"), InvariantBroken("a bug")
WAKE = Due(again=True)


@pytest.mark.parametrize(
    ("state", "error", "left"),
    [
        pytest.param({"how": "done"}, None, None, id="done"),
        pytest.param({"how": "done", "again": True}, None, WAKE, id="done, and woken meanwhile"),
        pytest.param({"how": "interrupted", "stop": True}, None, None, id="interrupted and settled"),
        pytest.param(
            {"how": "interrupted", "stop": True, "again": True}, None, WAKE, id="a prompt behind that"
        ),
        pytest.param({"how": "failed", "begun": True}, BUG, None, id="failed: waits for recovery"),
        pytest.param({"how": "failed", "again": True}, BUG, WAKE, id="failed, and woken meanwhile"),
        pytest.param({"how": "abandoned", "begun": True}, LOST, CutOff(), id="cut off: the setting decides"),
        pytest.param({"how": "abandoned"}, LOST, WAKE, id="lost before anything began"),
        pytest.param(
            {"how": "abandoned", "_taken_force": True},
            LOST,
            Due(again=True, force=True),
            id="resumed, and lost before anything began",
        ),
        pytest.param(
            {"how": "abandoned", "begun": True, "_taken_force": True},
            LOST,
            CutOff(),
            id="resumed and cut off: of a later unknown outcome the user has not heard",
        ),
        pytest.param(
            {"how": "abandoned", "begun": True, "again": True, "force": True},
            LOST,
            Due(again=True, force=True),
            id="cut off, and resumed meanwhile",
        ),
        pytest.param(
            {"how": "abandoned", "begun": True, "stop": True, "asked_at": 7},
            LOST,
            Due(stop=7),
            id="cut off before an interrupt was settled",
        ),
        pytest.param(
            {"how": "abandoned", "stop": True, "asked_at": 7, "stopped_elsewhere": True, "again": True},
            LOST,
            Due(stop=7, stopped_elsewhere=True, again=True),
            id="the same from elsewhere, with a prompt behind it",
        ),
        pytest.param({}, BUSY, WAKE, id="not claimed: its caller may be gone"),
        pytest.param({"force": True}, BUSY, Due(again=True, force=True), id="resumed and not claimed"),
        pytest.param({"answered": True}, BUSY, Due(again=True, answered=True), id="answered and not claimed"),
        pytest.param({"stop": True, "asked_at": 7}, BUSY, Due(stop=7), id="interrupted and not claimed"),
        pytest.param({}, LOST, WAKE, id="the lease was lost behind the claim"),
        pytest.param({"claimed": True}, BUSY, None, id="claimed, and the store went away: it was released"),
        pytest.param({"command": True}, BUSY, None, id="a command that was refused: its caller was told"),
        pytest.param({"command": True, "again": True}, BUSY, WAKE, id="a prompt beside a refused command"),
        pytest.param(
            {"command": True, "how": "abandoned", "begun": True},
            LOST,
            None,
            id="a command that was cut off wakes nothing",
        ),
    ],
)
def test_what_is_left(state: dict[str, Any], error: HoldfastError | None, left: Due | CutOff | None) -> None:
    """An interrupt that is not settled, a wake that nothing has begun to work on, or work cut off."""
    entry = RunningSession()
    for name, value in state.items():
        assert hasattr(entry, name)
        setattr(entry, name, value)
    if state.get("command"):
        entry.command = UserCommand(command="true", message=MessageID("msg_1"))
    entry.error = error

    assert entry.left() == left


def test_what_was_left_is_what_the_next_run_is_for() -> None:
    """Also when it is cut off again before it has begun."""
    for due in (
        Due(stop=7, stopped_elsewhere=True, again=True, force=True, answered=True),
        Due(stop=0),
        Due(again=True, force=True),
    ):
        entry = RunningSession.of(due)
        entry.next_drain()
        entry.take_force()
        entry.error = StoreBusy("away") if due.stop is not None else LeaseLost("lost")
        assert entry.left() == due


@pytest.mark.parametrize(("first", "second", "means"), [(5, 7, 7), (7, 5, 7)])
def test_the_later_of_two_interrupts_counts(first: int, second: int, means: int) -> None:
    """Whichever is seen first: what was admitted before it is meant."""
    run: Any = type("Stub", (), {"interrupted": True, "asked_at": 0})()
    entry = RunningSession()
    entry.run = run
    entry.end()
    entry.note_asked(first)
    entry.interrupt(run, second)
    assert (entry.asked_at, run.asked_at, entry.stopped_elsewhere) == (means, means, second > first)


@pytest.mark.parametrize(
    ("asked_at", "resumed_at", "is_kept"),
    [
        pytest.param(5, 7, True, id="the interrupt came first"),
        pytest.param(7, 7, True, id="nothing was written between the two"),
        pytest.param(9, 7, False, id="the interrupt came later, and means the resume too"),
    ],
)
@pytest.mark.parametrize("first", ["interrupt", "resume"])
def test_an_interrupt_from_elsewhere_means_what_was_resumed_before_it(
    asked_at: int, resumed_at: int, is_kept: bool, first: str
) -> None:
    """Whichever of the two is seen first."""
    run: Any = type("Stub", (), {"interrupted": True, "asked_at": 0})()
    entry = RunningSession()
    entry.run = run
    entry.wake(force=True, answered=False)
    if first == "resume":
        assert not entry.note_resumed(resumed_at)
        entry.interrupt(run, asked_at)
    else:
        entry.interrupt(run, asked_at)
        assert entry.note_resumed(resumed_at) is is_kept
    entry.how = "interrupted"

    assert entry.left() == (Due(again=True, force=True) if is_kept else None)

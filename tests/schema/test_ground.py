"""What stands beside the schema on the ground: errors, clock, flags."""

import pickle
import re
import time

import pytest

from holdfast import errors, flags
from holdfast.clock import Clock, SystemClock


def test_the_drawn_tree_is_the_tree() -> None:
    """Every class of errors.py stands in its docstring, under its parent, and no other does."""
    drawn: dict[str, str] = {}
    path: list[str] = []
    for indent, name in re.findall(r"^    ([│├└─ ]*)([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE):
        del path[len(indent) // 4 :]
        if path:
            drawn[name] = path[-1]
        path.append(name)

    assert drawn == {
        cls.__name__: cls.__base__.__name__
        for cls in vars(errors).values()
        if isinstance(cls, type) and cls is not errors.HoldfastError
    }


def test_a_corrupt_record_says_which_and_what_to_do() -> None:
    """One line: what, where, what to do next."""
    error = errors.RecordCorrupt("ses_1", "part", "prt_1", "at `$.text`")

    assert str(error) == "part prt_1 of session ses_1 cannot be read: at `$.text`; run `holdfast doctor`"
    assert (
        str(errors.RecordCorrupt(None, "trust", "t", "x"))
        == "trust t cannot be read: x; run `holdfast doctor`"
    )


@pytest.mark.parametrize(
    "error",
    [
        errors.RecordCorrupt("ses_1", "part", "prt_1", "at `$.text`"),
        errors.ProviderError("busy", retryable=True, retry_after_ms=5),
        errors.NotFound("no such session"),
    ],
)
def test_errors_travel_between_processes(error: errors.HoldfastError) -> None:
    """Pickling keeps the class, the message and the fields."""
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_provider_error_is_final_unless_said_otherwise() -> None:
    """Retrying is a statement, not a default."""
    error = errors.ProviderError("no")

    assert (error.retryable, error.retry_after_ms) == (False, None)


def test_the_system_clock_reads_both_clocks() -> None:
    """Wall time is the system's; the boot clock never goes back and is at least the monotonic one."""
    clock: Clock = SystemClock()
    before = time.time_ns() // 1_000_000
    monotonic = time.monotonic_ns() // 1_000_000
    first, second = clock.boot_ms(), clock.boot_ms()

    assert before <= clock.now_ms() <= time.time_ns() // 1_000_000
    assert first <= second
    assert first >= monotonic - 1


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [(None, None, None), (None, "b", "b"), ("a", None, "a"), ("a", "b", "a"), ("", "b", "")],
)
def test_our_flag_wins(
    monkeypatch: pytest.MonkeyPatch, ours: str | None, theirs: str | None, expected: str | None
) -> None:
    """HOLDFAST_ before OPENCODE_, read at each call, and set to nothing is set."""
    for prefix, value in (("HOLDFAST", ours), ("OPENCODE", theirs)):
        if value is not None:
            monkeypatch.setenv(f"{prefix}_{flags.FAKE_VCS}", value)

    assert flags.flag(flags.FAKE_VCS) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", True),
        ("true", True),
        ("TRUE", True),
        ("0", False),
        ("", False),
        ("yes", False),
        ("false", False),
    ],
)
def test_a_switch_is_on_or_off(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    """On is 1 or true; everything else is off."""
    assert not flags.enabled("PURE")
    monkeypatch.setenv("HOLDFAST_PURE", value)

    assert flags.enabled("PURE") is expected

"""The PTY Environment: which value wins."""

from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.location.terminal.environment import merged


def test_the_caller_s_values_then_the_host_s_then_what_is_forced() -> None:
    """Over what commands see of this process's environment."""
    base = {"A": "base", "B": "base", "C": "base", "TERM": "base", "PWD": "base"}
    caller = {"B": "caller", "C": "caller", "TERM": "caller", "OPENCODE_TERMINAL": "caller"}
    overlay = {"C": "host", "TERM": "host", "HOLDFAST_TERMINAL": "host"}

    assert merged(base, caller, overlay, cwd="/there") == {
        "A": "base",
        "B": "caller",
        "C": "host",
        "PWD": "/there",
        "TERM": "xterm-256color",
        "OPENCODE_TERMINAL": "1",
        "HOLDFAST_TERMINAL": "1",
    }


@pytest.mark.parametrize(
    "wrong", [{"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "secret\0"}, {"A": 5}, {5: "x"}]
)
def test_what_the_system_does_not_take_is_refused_without_its_value(wrong: dict[Any, Any]) -> None:
    """By the name of the variable; a value may be a secret."""
    nothing: dict[str, str] = {}
    for caller, overlay in ((wrong, nothing), (nothing, wrong)):
        with pytest.raises(InvalidInput) as refused:
            merged({}, caller, overlay, cwd="/")
        assert "secret" not in str(refused.value)
        assert "\n" not in str(refused.value)

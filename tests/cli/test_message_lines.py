"""What people read of a message beside its text: every way to end badly has a line."""

from typing import Any

import pytest

from holdfast.cli import message_lines

STEP = {
    "type": "step-finish",
    "cost": 0.25,
    "tokens": {"input": 1000, "output": 50, "reasoning": 6, "cache": {"read": 200, "write": 34}},
}
ANSWER = {"role": "assistant", "providerID": "acme", "modelID": "m", "finish": "stop"}


@pytest.mark.parametrize(
    ("info", "line"),
    [
        ({"finish": "stop"}, None),
        ({"finish": "length"}, "✗ cut off at the output limit (56 tokens)"),
        (
            {"error": {"name": "MessageAbortedError", "data": {"message": "stopped"}}},
            "✗ MessageAbortedError: stopped",
        ),
        (
            {"error": {"name": "APIError", "data": {"message": "no such model", "statusCode": 400}}},
            "✗ APIError: no such model (HTTP 400)",
        ),
        (
            {"error": {"name": "APIError", "data": {"message": "acme: no (HTTP 400)", "statusCode": 400}}},
            "✗ APIError: acme: no (HTTP 400)",
        ),
        ({"error": {"name": "UnknownError", "data": None}}, "✗ UnknownError"),
    ],
    ids=["well", "length", "aborted", "status", "status in words", "no data"],
)
def test_an_answer_that_did_not_end_well_says_so(info: dict[str, Any], line: str | None) -> None:
    """By its name, in its words."""
    assert message_lines.ending({**ANSWER, **info}, [STEP]) == line


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        ({"status": "completed", "input": {"a": 1}}, ['  · read [completed] {"a":1}']),
        (
            {
                "status": "error",
                "input": {},
                "error": "no such file\nmore",
                "metadata": {"outcome": "denied"},
            },
            ["  · read [denied] {}", "    ✗ no such file"],
        ),
        ({"status": "error", "input": {}, "error": ""}, ["  · read [error] {}"]),
    ],
)
def test_a_call_that_failed_says_why(state: dict[str, Any], lines: list[str]) -> None:
    """The first line of its error, and its outcome."""
    assert message_lines.of_part({"type": "tool", "tool": "read", "state": state}) == lines


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ([STEP], "acme/m · 1,234 tokens in (200 cached) · 56 out · $0.2500"),
        ([STEP, STEP], "acme/m · 2,468 tokens in (400 cached) · 112 out · $0.5000"),
        ([{**STEP, "cost": 0, "costKnown": False}], "acme/m · 1,234 tokens in (200 cached) · 56 out · ?"),
        (
            [STEP, {**STEP, "cost": 0, "costKnown": False}],
            "acme/m · 2,468 tokens in (400 cached) · 112 out · $0.2500 + ?",
        ),
        ([], "acme/m"),
    ],
    ids=["one", "two", "unknown", "partly unknown", "nothing counted"],
)
def test_an_answer_says_who_gave_it_and_what_it_took(parts: list[Any], line: str) -> None:
    """A price that nobody knows is a question mark, never nothing."""
    assert message_lines.usage(ANSWER, parts) == line
    assert message_lines.usage({"role": "user"}, parts) is None

"""What somebody's code gave is recorded as JSON brings it back, or refused in words."""

from typing import Any

import msgspec
import pytest

from holdfast.errors import InvalidInput
from holdfast.schema.wire import JsonMap
from holdfast.text import mended
from holdfast.tools.plain import DEPTH_MAX, described, plain


class Named(msgspec.Struct):
    """A value with a text."""

    name: str


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise SystemExit("no words")


def nested(depth: int) -> Any:
    value: Any = []
    for number in range(depth - 1):
        value = [value] if number % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        (Named, Named(name=5), "Expected `str`, got `int` - at `$.name`"),  # type: ignore[arg-type]
        (JsonMap, {"a": {1, object()}}, "has no JSON form"),
        (JsonMap, {"a": float("inf")}, "inf is not a finite number"),
        (JsonMap, {"a": nested(DEPTH_MAX)}, "it is nested too deeply"),
        (JsonMap, [1], "Expected `object`, got `array`"),
    ],
)
def test_what_no_record_can_hold_is_refused(type_: Any, value: Any, words: str) -> None:
    """With the place, where there is one."""
    with pytest.raises(InvalidInput) as refused:
        plain(type_, value)
    assert words in str(refused.value)


def test_a_value_that_holds_itself_is_refused() -> None:
    """It has no end; neither where a text of it must be mended first."""
    for start in ({}, {"a": "\ud800"}):
        value: dict[str, Any] = dict(start)
        value["self"] = value
        with pytest.raises(InvalidInput):
            plain(JsonMap, value)


def test_a_value_is_a_copy_as_json_brings_it_back() -> None:
    """Tuples are lists, keys are texts; much that is flat is not deep, nor are brackets in a text."""
    inner = [1]
    value = {"a": (inner, 2.5), 3: None, "b": "[" * 500, "c": [[]] * 500, "d": nested(DEPTH_MAX - 2)}
    found = plain(JsonMap, value)
    inner.append(2)
    assert found == {
        "a": [[1], 2.5],
        "3": None,
        "b": "[" * 500,
        "c": [[]] * 500,
        "d": nested(DEPTH_MAX - 2),
    }


def test_text_that_is_no_unicode_is_mended_unless_the_value_is_to_stay_exact() -> None:
    """Halves of a pair that belong together are the sign that they are."""
    assert plain(JsonMap, {"\udce9": [Named(name="\ud800b\ud83d\ude00")]}) == {
        "\N{REPLACEMENT CHARACTER}": [{"name": "\N{REPLACEMENT CHARACTER}b\N{GRINNING FACE}"}]
    }
    assert mended("plain") == "plain"
    with pytest.raises(InvalidInput):
        plain(JsonMap, {"a": "\ud800"}, exact=True)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\n  b\ud800"), "ValueError: a b?"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (Mute(), "Mute"),
        (ValueError("x" * 1_000), "ValueError: " + "x" * 488),
    ],
)
def test_an_error_is_described_on_one_line(error: BaseException, line: str) -> None:
    """Bounded, and in letters that can be written."""
    assert described(error) == line

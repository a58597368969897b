"""One value of a settings file is changed; everything else is as the user wrote it."""

import json
from typing import Any

import pyjson5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config.documents.edit import with_value, without
from holdfast.errors import Refused

WRITTEN = """// my settings
{
  "model": "a/b", // the good one
  /* servers */
  "mcp": {
    "one": { "type": "remote", "url": "https://example.invalid" }, // the first
    // the second
    "two": { "type": "local", "command": ["x"] } // trailing
  },
}
"""


@pytest.mark.parametrize(
    ("text", "path", "value", "made"),
    [
        ("", ("a",), 1, '{\n  "a": 1\n}\n'),
        ("{}", ("a", "b"), [1], '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}'),
        ('{"a": 1}', ("b",), {"c": 2}, '{"a": 1, "b": {"c": 2}}'),
        ('{"a": 1,}', ("a",), 2, '{"a": 2,}'),
        ("{ // why\n}", ("a",), 1, '{ // why\n  "a": 1\n}'),
        ('{\n\t"a": 1 // x\n}', ("b",), 2, '{\n\t"a": 1, // x\n\t"b": 2\n}'),
        ("{a: 1}", ("a",), "y", '{a: "y"}'),
        ('{"a": {"x": 1}, "a": {"y": 2}}', ("a", "y"), 3, '{"a": {"x": 1}, "a": {"y": 3}}'),
    ],
)
def test_a_value_is_set(text: str, path: tuple[str, ...], value: Any, made: str) -> None:
    """In its place, or behind the last of its object, with the user's own indentation."""
    assert with_value(text, path, value) == made


def test_an_entry_joins_others_with_their_comments() -> None:
    """Each comment stays on its line."""
    made = with_value(WRITTEN, ("mcp", "three"), {"type": "local", "command": ["y"]})
    added = '    "three": {\n      "type": "local",\n      "command": [\n        "y"\n      ]\n    }\n  },\n'

    assert made == WRITTEN.replace(" } // trailing\n  },\n", f" }}, // trailing\n{added}")


@pytest.mark.parametrize(
    ("text", "path", "made"),
    [
        ('{"a": 1, "b": 2}', ("a",), '{ "b": 2}'),
        ('{"a": 1, "b": 2}', ("b",), '{"a": 1 }'),
        ('{\n  "a": 1, // x\n  // y\n  "b": 2\n}\n', ("a",), '{\n  // y\n  "b": 2\n}\n'),
        ('{\n  "a": 1, // x\n  "b": 2 // z\n}\n', ("b",), '{\n  "a": 1 // x\n}\n'),
        ('{"a": {"b": 1}}', ("a", "b"), '{"a": {}}'),
        ('{"a": 1, "a": 2}', ("a",), "{ }"),
    ],
)
def test_a_value_is_removed(text: str, path: tuple[str, ...], made: str) -> None:
    """With its line and its comma; other comments stay."""
    assert without(text, path) == made


def test_an_entry_leaves_and_its_neighbours_stay() -> None:
    """The comment above it is nobody's to judge."""
    line = '    "two": { "type": "local", "command": ["x"] } // trailing\n'
    made = without(WRITTEN, ("mcp", "two"))

    assert made == WRITTEN.replace(line, "").replace("}, // the first", "} // the first")


@pytest.mark.parametrize("text", ["[1]", "{", "nonsense", '{"a": 1'])
def test_a_file_that_is_no_object_is_left_alone(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(Refused):
        with_value(text, ("a",), 1)


def test_a_value_on_the_way_is_not_replaced() -> None:
    """A text where an object is needed was somebody's choice."""
    with pytest.raises(Refused, match="mcp is no object"):
        with_value('{"mcp": "x"}', ("mcp", "one"), {})


KEYS = st.sampled_from(["a", "b", "c d", "ü", "//", '"'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "// no", "/*", "},", "x\ny"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.ci
@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.lists(KEYS, min_size=1, max_size=3),
    VALUES,
    st.sampled_from([None, 2]),
)
def test_only_that_value_is_another(before: Any, path: list[str], value: Any, indent: int | None) -> None:
    """Whatever the file holds: the new text is checked against the old one, so it is right or refused. Set
    and removed again, a value that was not there leaves all others.
    """
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    try:
        made = with_value(text, tuple(path), value)
    except Refused:
        return
    found: Any = pyjson5.decode(made)
    for key in path:
        found = found[key]

    assert found == value
    if len(path) == 1 and path[0] not in before:
        assert pyjson5.decode(without(made, tuple(path))) == before

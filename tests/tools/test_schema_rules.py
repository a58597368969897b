"""Which schemas a thread may judge, since the work is in proportion to their size: a table."""

from typing import Any

import pytest

from holdfast.tools import schema_rules

MIXED: Any = [{}, *range(40)]


def nested(depth: int) -> Any:
    return {"items": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("schema", "quick"),
    [
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, True),
        ({"$defs": {"a": {"enum": ["x"] * 1_000}}, "properties": {"a": {"$ref": "#/$defs/a"}}}, True),
        ({"enum": [*range(1_000), 0.5]}, True),
        ({"enum": MIXED[:32]}, True),
        ({"enum": MIXED}, False),
        ({"enum": [True, *range(40)]}, False),
        ({"enum": [None, *["x"] * 40]}, False),
        ({"required": MIXED}, False),
        ({"properties": {"a": {"items": {"type": MIXED}}}}, False),
        ({"pattern": "^[a-z]+$"}, True),
        ({"pattern": "a" * 201}, False),
        ({"pattern": "(?i)[a-z]"}, False),
        ({"properties": {"pattern": {"type": "string"}}}, True),
        ({"patternProperties": {"^x-": {}}}, True),
        ({"patternProperties": {"(?i)x": {}}}, False),
        (nested(100), True),
        (nested(101), False),
        ([], True),
        (True, True),
    ],
)
def test_what_is_judged_in_proportion_to_its_size(schema: Any, quick: bool) -> None:
    """Lists whose items have to be compared one by one are not, nor are patterns with flags or long ones."""
    assert schema_rules.is_quick(schema) is quick


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "object"}, ""),
        ({"type": "objekt"}, "'objekt' is not valid under any of the given schemas"),
        ({"$schema": []}, "it cannot be judged: TypeError"),
    ],
)
def test_why_it_is_no_schema(schema: Any, problem: str) -> None:
    """A text for people; whatever the judge does at what others made up."""
    assert schema_rules.schema_problem(schema) == problem

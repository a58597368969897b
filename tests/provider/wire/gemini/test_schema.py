"""Schemas of tools in the words that Gemini knows."""

from typing import Any

import pytest

from holdfast.provider.wire.gemini import schema

TEXT = {"type": "STRING"}


def of(property: Any, **root: Any) -> Any:
    """How a property is said."""
    made = schema.parameters({"type": "object", "properties": {"p": property}, **root})
    assert made is not None
    assert (set(made), made["type"]) == ({"type", "properties"}, "OBJECT")
    return made["properties"]["p"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        # words that the wire does not know
        ({"type": "string", "$comment": "c", "default": "x", "examples": ["y"], "x-own": 1}, TEXT),
        ({"type": "string", "format": "uri"}, TEXT),
        ({"type": "string", "format": "date-time"}, {**TEXT, "format": "date-time"}),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}, {"type": "INTEGER", "maximum": 9}),
        # values
        ({"const": "a"}, {**TEXT, "enum": ["a"]}),
        ({"enum": ["a", "b"], "description": "d"}, {**TEXT, "enum": ["a", "b"], "description": "d"}),
        ({"type": "string", "enum": ["a", None]}, {**TEXT, "enum": ["a"], "nullable": True}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "One of: 1, 2."}),
        ({"const": 3, "description": "Three."}, {"type": "INTEGER", "description": "Three. One of: 3."}),
        ({"enum": [0.5, 1]}, {"type": "NUMBER", "description": "One of: 0.5, 1."}),
        ({"const": True}, {"type": "BOOLEAN", "description": "One of: True."}),
        # null
        ({"type": ["string", "null"]}, {**TEXT, "nullable": True}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {**TEXT, "nullable": True}),
        ({"oneOf": [{"type": "null"}]}, {**TEXT, "nullable": True}),
        # choices
        (
            {"type": ["string", "integer"], "description": "d"},
            {"description": "d", "anyOf": [TEXT, {"type": "INTEGER"}]},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "boolean"}], "description": "d", "minLength": 1},
            {"description": "d", "anyOf": [TEXT, {"type": "BOOLEAN"}]},
        ),
        (
            {"anyOf": [{"type": "string", "description": "inner"}], "description": "outer"},
            {**TEXT, "description": "outer"},
        ),
        # arrays
        ({"type": "array"}, {"type": "ARRAY", "items": TEXT}),
        ({"type": "array", "items": {}, "minItems": 1}, {"type": "ARRAY", "items": TEXT, "minItems": 1}),
        ({"items": {"type": "number"}}, {"type": "ARRAY", "items": {"type": "NUMBER"}}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            {"type": "ARRAY", "items": {"anyOf": [TEXT, {"type": "INTEGER"}]}},
        ),
        # objects
        ({"type": "object"}, {"type": "OBJECT"}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "OBJECT"}),
        (
            {"type": "object", "properties": {"a": True}, "required": ["a", "gone"]},
            {"type": "OBJECT", "properties": {"a": TEXT}, "required": ["a"]},
        ),
        (
            {"type": "object", "properties": {"a": True}, "required": ["gone"]},
            {"type": "OBJECT", "properties": {"a": TEXT}},
        ),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "boolean"}}, "required": ["b"]},
                ]
            },
            {
                "type": "OBJECT",
                "properties": {"a": TEXT, "b": {"type": "BOOLEAN"}},
                "required": ["a", "b"],
            },
        ),
        # anything
        ({}, TEXT),
        (True, TEXT),
        ({"type": "strange"}, TEXT),
    ],
)
def test_what_a_property_becomes(given: Any, said: Any) -> None:
    """Each thing that the wire refuses is said otherwise, or left out."""
    assert of(given) == said


@pytest.mark.parametrize(
    "root",
    [{}, {"type": "object"}, {"type": "object", "properties": {}, "$schema": "s"}, {"type": "string"}],
)
def test_no_parameters(root: dict[str, Any]) -> None:
    """A function without properties declares no parameters: an empty object is refused."""
    assert schema.parameters(root) is None


def test_references_are_written_out() -> None:
    """Both homes of definitions; what stands beside a reference counts; an unknown one is an object."""
    defs = {"$defs": {"a/b": {"type": "string"}}, "definitions": {"c": {"type": "integer"}}}

    assert of({"$ref": "#/$defs/a~1b", "description": "d"}, **defs) == {**TEXT, "description": "d"}
    assert of({"$ref": "#/definitions/c"}, **defs) == {"type": "INTEGER"}
    assert of({"$ref": "#/$defs/gone"}, **defs) == {"type": "OBJECT"}


def test_a_schema_that_refers_to_itself_ends() -> None:
    """A tree is shown to the depth of one."""
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}

    assert of({"$ref": "#/$defs/n"}, **{"$defs": {"n": node}}) == {
        "type": "OBJECT",
        "properties": {"kids": {"type": "ARRAY", "items": {"type": "OBJECT"}}},
    }


def test_a_schema_that_multiplies_is_bounded() -> None:
    """Definitions that each name all others do not grow without end."""
    names = [f"d{number}" for number in range(12)]
    all_of_them = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    defs = {name: {"type": "object", "properties": all_of_them} for name in names}

    assert len(repr(of({"$ref": "#/$defs/d0"}, **{"$defs": defs}))) < 200_000


def test_a_choice_at_the_root_is_one_object() -> None:
    """The outermost schema is an object: forms are joined, and what only one has is not demanded."""
    made = schema.parameters(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "anyOf": [{"required": ["b"]}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
        }
    )

    assert made == {
        "type": "OBJECT",
        "properties": {"a": TEXT, "b": {"type": "INTEGER"}},
        "required": ["a"],
    }

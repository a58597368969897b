"""A tool is a function with type hints: its schema, its description, its checks."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

from holdfast.errors import InvalidInput
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from holdfast.toolkit.output import ToolFailure

CONTEXT: Any = object()


class Place(msgspec.Struct):
    """A nested value."""

    city: str


@tool(repeatable=True, permission="web")
async def weather(
    context: ToolContext,
    place: Place,
    unit: Annotated[Literal["C", "F"], "Celsius or Fahrenheit"] = "C",
    days: Annotated[int, msgspec.Meta(ge=1, description="How many days")] = 1,
) -> str:
    """Tell the weather.

    Only the near future is known.
    """
    return f"{place.city} {unit} {days}"


def test_the_definition_is_made_of_the_function() -> None:
    """Name, description, schema with descriptions, defaults and nested types."""
    assert (weather.name, weather.permission, weather.repeatable) == ("weather", "web", True)
    assert weather.description == "Tell the weather.\n\nOnly the near future is known."
    assert weather.schema == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place"},
            "unit": {"enum": ["C", "F"], "description": "Celsius or Fahrenheit", "default": "C"},
            "days": {"type": "integer", "minimum": 1, "description": "How many days", "default": 1},
        },
        "required": ["place"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "title": "Place",
                "description": "A nested value.",
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            }
        },
    }


async def test_input_is_checked_before_the_function_runs() -> None:
    """The model is told what is wrong in words that it can act on."""
    assert await weather.run(CONTEXT, {"place": {"city": "Bonn"}, "days": 2}) == "Bonn C 2"
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({}, "missing required field `place`"),
        ({"place": {"city": "B"}, "days": "2"}, "Expected `int`, got `str` - at `$.days`"),
        ({"place": {"city": "B"}, "days": 0}, "Expected `int` >= 1 - at `$.days`"),
        ({"place": {"city": "B"}, "when": 1}, "unknown field `when`"),
    ]
    for wrong, words in wrongs:
        with pytest.raises(ToolFailure, match="The arguments of weather are not valid") as caught:
            await weather.run(CONTEXT, wrong)
        assert words in str(caught.value)


async def test_a_tool_without_arguments_has_an_empty_schema() -> None:
    """And refuses any."""

    @tool(name="now")
    async def clock(context: ToolContext) -> str:
        """Tell the time."""
        return "noon"

    assert clock.schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert await clock.run(CONTEXT, {}) == "noon"


def test_a_mistake_in_a_declaration_is_told_at_once() -> None:
    """A plain function, a parameter without a type, variable arguments."""

    def plain(context: ToolContext) -> str:
        return ""

    async def untyped(context: ToolContext, x) -> str:  # type: ignore[no-untyped-def]
        return ""

    async def variable(context: ToolContext, *x: int) -> str:
        return ""

    for function, words in [
        (plain, "must be an async function"),
        (untyped, "the parameter x of the tool untyped needs"),
        (variable, "the parameter x of the tool variable needs"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            tool()(function)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "no name", "x" * 65, "a.b", "\u00e4"])
def test_a_name_that_no_provider_takes_is_refused_where_it_is_declared(name: str) -> None:
    """With a line that says what a name is."""
    declare = tool(name=name or "-.")
    with pytest.raises(InvalidInput, match="is no name of a tool: letters, digits, _ and -, at most 64"):

        @declare
        async def odd(context: ToolContext) -> str:
            """Never called."""
            return ""

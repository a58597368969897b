"""The tool by which a model gives an answer of a given form: its input is the answer.

What must stay true: an answer that does not fit is sent back with what is wrong, and never taken. The schema
is the caller's, so checking it is bounded and fetches nothing.
"""

from typing import Any, Final

from holdfast.errors import InvalidInput
from holdfast.schema.wire import JsonMap
from holdfast.tool.context import ToolContext
from holdfast.tool.declare import Tool
from holdfast.tool.output import ToolFailure, ToolOutput

NAME: Final = "StructuredOutput"
DESCRIPTION: Final = (
    "Give your final answer in the form that was asked for. Call this once, when the work is done, with the "
    "whole answer as arguments; write no other text for it."
)
_ERRORS_MAX = 5


def check_schema(schema: JsonMap) -> None:
    """Refuse a schema that is none, or whose root is no object: tool arguments are objects."""
    import jsonschema

    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InvalidInput(f"the schema of the answer is not valid: {error.message[:200]}") from None
    if schema.get("type", "object") != "object":
        raise InvalidInput("the schema of the answer must be an object; put what you want into a property")


def structured_tool(schema: JsonMap) -> Tool:
    """The tool for one schema."""

    async def run(context: ToolContext, input: JsonMap) -> ToolOutput:
        wrong = errors(schema, input)
        if wrong:
            raise ToolFailure(
                "The answer does not have the form that was asked for: "
                + "; ".join(wrong)
                + ". Mend it, and "
                f"call {NAME} again."
            )
        return ToolOutput(text="The answer was taken.", title="Answer")

    return Tool(
        name=NAME,
        description=DESCRIPTION,
        schema={"type": "object", **schema},
        run=run,
        permission=NAME,
        repeatable=True,
    )


def errors(schema: JsonMap, value: Any) -> list[str]:
    """What is wrong with a value, the first few, by place."""
    import jsonschema
    from referencing import Registry

    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)(
        schema,
        registry=Registry(),  # Nothing is fetched: an unknown reference is an error.
    )
    found = []
    try:
        for error in validator.iter_errors(value):
            where = "/".join(map(str, error.absolute_path)) or "the answer"
            found.append(f"{where}: {error.message[:200]}")
            if len(found) == _ERRORS_MAX:
                break
    except Exception as error:  # noqa: BLE001 - a schema of the caller's may fail in any way when it is used
        found.append(f"the schema cannot be applied: {type(error).__name__}")
    return found

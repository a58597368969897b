"""The tool by which a model gives an answer of a given form: its input is the answer.

What must stay true: an answer that does not fit is sent back with what is wrong, and never taken. The schema
is the caller's: it is judged off the event loop, in bounds, and nothing is fetched for it.
"""

from typing import Any, Final

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools import schema_check
from holdfast.tools.schema_check import Unjudged

NAME: Final = "StructuredOutput"
DESCRIPTION: Final = (
    "Give your final answer in the form that was asked for. Call this once, when the work is done, with the "
    "whole answer as arguments; write no other text for it."
)
SCHEMA_BYTES_MAX: Final = 256 * 1024
CPU_S: Final = 5
"""How much processor time a check may take: a busy machine makes no right answer wrong."""
_KNOWN_MAX: Final = 256

_sound: dict[bytes, None] = {}
"""Schemas that were found to be some."""


async def check_schema(schema: JsonMap) -> None:
    """Refuse a schema that is none, or whose root is no object: tool arguments are objects."""
    data = msgspec.json.encode(schema)
    if len(data) > SCHEMA_BYTES_MAX:
        raise InvalidInput(f"the schema of the answer has {len(data)} bytes; {SCHEMA_BYTES_MAX} are allowed")
    if data in _sound:
        return
    try:
        wrong = await schema_check.schema_problems(schema, cpu_s=CPU_S)
    except Unjudged as error:
        raise InvalidInput(f"the schema of the answer cannot be used: {error}") from None
    if wrong:
        raise InvalidInput(f"the schema of the answer is not valid: {wrong[0]}")
    if schema.get("type", "object") != "object":
        raise InvalidInput("the schema of the answer must be an object; put what you want into a property")
    if len(_sound) >= _KNOWN_MAX:
        _sound.clear()
    _sound[data] = None


def structured_tool(schema: JsonMap) -> Tool:
    """The tool for one schema."""

    async def run(context: ToolContext, input: JsonMap) -> ToolOutput:
        try:
            wrong = await errors(schema, input)
        except Unjudged as error:
            raise ToolFailure(f"The answer could not be checked: {error}. A shorter one may do.") from None
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


async def errors(schema: JsonMap, value: Any) -> list[str]:
    """What is wrong with a value, the first few, by place; `Unjudged` where that is not known in bounds."""
    return await schema_check.value_problems(schema, value, cpu_s=CPU_S)

"""The tool by which a model gives an answer of a given form: its input is the answer.

What must stay true: an answer that does not fit is sent back with what is wrong, and never taken. The schema
is the caller's: it is judged off the event loop, in bounds, and nothing is fetched for it.
"""

import sys
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.wire import JsonMap
from holdfast.tool.context import ToolContext
from holdfast.tool.declare import Tool
from holdfast.tool.output import ToolFailure, ToolOutput
from holdfast.tools import schema_rules
from holdfast.tools.schema_rules import Task

NAME: Final = "StructuredOutput"
DESCRIPTION: Final = (
    "Give your final answer in the form that was asked for. Call this once, when the work is done, with the "
    "whole answer as arguments; write no other text for it."
)
SCHEMA_BYTES_MAX: Final = 256 * 1024
CHECK_S: Final = 5.0
"""How long a check may take."""
_SMALL_BYTES: Final = 64 * 1024
"""What a thread may judge: schema and value together."""


async def check_schema(schema: JsonMap) -> None:
    """Refuse a schema that is none, or whose root is no object: tool arguments are objects."""
    if (length := len(msgspec.json.encode(schema))) > SCHEMA_BYTES_MAX:
        raise InvalidInput(f"the schema of the answer has {length} bytes; {SCHEMA_BYTES_MAX} are allowed")
    wrong = await _judged(Task(schema=schema, value=None, judges_value=False, path=_places()))
    if wrong:
        raise InvalidInput(f"the schema of the answer is not valid: {wrong[0]}")
    if schema.get("type", "object") != "object":
        raise InvalidInput("the schema of the answer must be an object; put what you want into a property")


def structured_tool(schema: JsonMap) -> Tool:
    """The tool for one schema."""

    async def run(context: ToolContext, input: JsonMap) -> ToolOutput:
        wrong = await errors(schema, input)
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
    """What is wrong with a value, the first few, by place."""
    return await _judged(Task(schema=schema, value=value, judges_value=True, path=_places()))


async def _judged(task: Task) -> list[str]:
    """The problems: from a thread where the cost is bounded by the sizes, else from a process that is ended
    when it takes too long.
    """
    data = msgspec.json.encode(task)
    if len(data) <= _SMALL_BYTES and not schema_rules.is_risky(task["schema"]):
        return await anyio.to_thread.run_sync(schema_rules.problems, task)
    try:
        with anyio.fail_after(CHECK_S):
            done = await anyio.run_process(
                [sys.executable, "-I", str(Path(schema_rules.__file__))], input=data, check=False
            )
    except TimeoutError:
        return [f"the schema cannot be applied: it took longer than {CHECK_S:.0f} s"]
    except OSError as error:
        return [f"the schema cannot be applied: no process for it could be started ({error.strerror})"]
    if done.returncode:
        return ["the schema cannot be applied: it needs more memory or time than is allowed"]
    return msgspec.json.decode(done.stdout, type=list[str])


def _places() -> list[str]:
    """Where modules are found, less the current directory: that is the project's, not ours."""
    return [place for place in sys.path if place.startswith("/")]

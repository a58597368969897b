"""The tool by which a model gives an answer of a given form: its input is the answer.

What must stay true: an answer that does not fit is sent back with what is wrong, and never taken. The schema
is the caller's: it is judged off the event loop, in bounds, and nothing is fetched for it.
"""

import os
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import typed
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools import schema_rules
from holdfast.tools.schema_rules import Task

NAME: Final = "StructuredOutput"
DESCRIPTION: Final = (
    "Give your final answer in the form that was asked for. Call this once, when the work is done, with the "
    "whole answer as arguments; write no other text for it."
)
SCHEMA_BYTES_MAX: Final = 256 * 1024
CPU_S: Final = 5
"""How much processor time a check may take: a busy machine makes no right answer wrong."""
WAIT_S: Final = 60.0
"""How long a check may take by the clock, with its turn in the queue."""
_SMALL: Final = 10_000_000
"""What a thread may judge: bytes of the schema times bytes of the value."""
_KNOWN_MAX: Final = 256

_sound: dict[bytes, None] = {}
"""Schemas that were found to be some."""
_slots: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("slots")


class Unjudged(Exception):
    """The check came to no end within its bounds: nothing is known of the answer."""


async def check_schema(schema: JsonMap) -> None:
    """Refuse a schema that is none, or whose root is no object: tool arguments are objects."""
    data = msgspec.json.encode(schema)
    if len(data) > SCHEMA_BYTES_MAX:
        raise InvalidInput(f"the schema of the answer has {len(data)} bytes; {SCHEMA_BYTES_MAX} are allowed")
    if data in _sound:
        return
    try:
        wrong = await _judged(_task(schema, None, judges_value=False))
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
    return await _judged(_task(schema, value, judges_value=True))


def _task(schema: JsonMap, value: Any, *, judges_value: bool) -> Task:
    # Modules are found as here, but not in the current directory: that is the project's, not ours.
    places = [place for place in sys.path if place.startswith("/")]
    return Task(schema=schema, value=value, judges_value=judges_value, path=places, cpu_s=CPU_S)


async def _judged(task: Task) -> list[str]:
    """The problems: from a thread where the work is bounded by the sizes, else from a process, which can be
    ended. No more of them at once than there are processors.
    """
    size = len(msgspec.json.encode(task["schema"])) * len(msgspec.json.encode(task["value"]))
    if size <= _SMALL and schema_rules.is_plain(task["schema"]):
        return await anyio.to_thread.run_sync(schema_rules.problems, task)
    try:
        with anyio.fail_after(WAIT_S):
            async with _slot():
                done = await anyio.run_process(
                    [sys.executable, "-I", str(Path(schema_rules.__file__))],
                    input=msgspec.json.encode(task),
                    check=False,
                )
    except TimeoutError:
        raise Unjudged(f"the check took longer than {WAIT_S:.0f} s") from None
    except OSError as error:
        raise Unjudged(f"no process for the check could be started ({error.strerror})") from None
    if done.returncode:
        raise Unjudged(f"the check takes more than {task['cpu_s']} s, or too much memory")
    return typed.decode(done.stdout, list[str])


def _slot() -> anyio.CapacityLimiter:
    try:
        return _slots.get()
    except LookupError:
        made = anyio.CapacityLimiter(os.cpu_count() or 1)
        _slots.set(made)
        return made

"""Carries out one call: finds its tool, runs it, and turns whatever happens into what is recorded.

What must stay true: every call comes back as a `Settlement`; what a model did wrong comes back in words that
it can act on. Cancellation passes through: an interrupted call is settled by whoever interrupted it.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.tool.context import ToolContext
from holdfast.tool.output import Attachment, ToolDenied, ToolFailure, ToolOutput
from holdfast.tools import bounding
from holdfast.tools.bounding import OutputLimits
from holdfast.tools.registry import Toolset

Outcome = Literal["failed", "denied", "interrupted", "unknown"]
Keep = Callable[[str], Awaitable[str | None]]
"""Keeps a complete text in a Managed Tool Output File and answers its path; None when it could not."""


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a call. `outcome` is None when it succeeded; `stops` ends the work of the session."""

    output: str
    title: str = ""
    metadata: JsonMap = {}
    attachments: tuple[Attachment, ...] = ()
    outcome: Outcome | None = None
    stops: bool = False


async def execute(
    toolset: Toolset,
    name: str,
    input: JsonMap,
    context: ToolContext,
    *,
    invalid: str | None = None,
    closed: bool = False,
    limits: OutputLimits,
    keep: Keep,
) -> Settlement:
    """Run the call. `invalid` is what stood in the place of arguments; a `closed` tool is not to be used."""
    tool = toolset.find(name)
    if tool is None:
        known = ", ".join(each.name for each in toolset.tools) or "none"
        return failed(f"There is no tool called {name[:80]}. The tools are: {known}.")
    if toolset.is_stale(name):
        return failed(
            f"Stale tool call: {tool.name} was replaced meanwhile. Look at its definition, and call it again."
        )
    if closed:
        return failed(f"The tool {tool.name} is closed for this prompt.", outcome="denied")
    if invalid is not None:
        return failed(
            f"The arguments of {tool.name} are no JSON object: {invalid[:200]}. Write them again as JSON "
            "that fits its schema."
        )
    try:
        answer = await tool.run(context, input)
    except ToolDenied as denied:
        return Settlement(output=str(denied), outcome="denied", stops=denied.stops)
    except ToolFailure as failure:
        return failed(str(failure), metadata=failure.metadata)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the turn goes on
        line = " ".join(f"{type(error).__name__}: {error}".split())
        return failed(f"The tool {tool.name} broke: {line[:500]}")
    output = ToolOutput(text=answer) if isinstance(answer, str) else answer
    bounded = await bounding.bound(output, limits, keep)
    return Settlement(
        output=bounded.text,
        title=output.title or tool.name,
        metadata={**output.metadata, **bounded.metadata()},
        attachments=output.attachments,
    )


def failed(message: str, *, outcome: Outcome = "failed", metadata: JsonMap | None = None) -> Settlement:
    """A call that did not succeed, in words for the model."""
    return Settlement(output=message, metadata=metadata or {}, outcome=outcome)

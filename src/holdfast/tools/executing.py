"""Carries out one call: finds its tool, runs it, and turns whatever happens into what is recorded.

What must stay true: every call comes back as a `Settlement`, or waits for a person; what a model did wrong
comes back in words that it can act on. Cancellation passes through: an interrupted call is settled by whoever
interrupted it.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import anyio
import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.tool.context import ToolContext
from holdfast.tool.output import Attachment, ToolDenied, ToolFailure, ToolOutput, ToolParked
from holdfast.tools import bounding
from holdfast.tools.bounding import OutputLimits
from holdfast.tools.registry import Toolset

Outcome = Literal["failed", "denied", "interrupted", "unknown"]
Keep = Callable[[str], Awaitable[str | None]]
"""Keeps a complete text in a Managed Tool Output File and answers its path; None when it could not."""

STOPPED: Final = "stopped"
"""In the metadata of a call: a person's no ended the work here, until somebody speaks again."""


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
    closed: Callable[[str], bool] = lambda _: False,
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
    if closed(tool.name):
        return failed(f"The tool {tool.name} is closed for this prompt.", outcome="denied")
    if invalid is not None:
        return failed(
            f"The arguments of {tool.name} are no JSON object: {invalid[:200]}. Write them again as JSON "
            "that fits its schema."
        )
    try:
        # Whatever it promised: nobody checks the types of a person's own tool.
        answer: object = await tool.run(context, input)
    except ToolParked:
        raise
    except ToolDenied as refusal:
        return denied(str(refusal), stops=refusal.stops)
    except ToolFailure as failure:
        said = await bounding.bound(ToolOutput(text=str(failure)), limits, keep)
        cut = said.metadata() if said.truncated else {}
        return failed(said.text, metadata={**(failure.metadata or {}), **cut})
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the turn goes on
        line = " ".join(f"{type(error).__name__}: {error}".split())
        # A name of the filesystem that is not UTF-8 would be in it as what no record can hold.
        return failed(f"The tool {tool.name} broke: {line[:500].encode(errors='replace').decode()}")
    output = ToolOutput(text=answer) if isinstance(answer, str) else answer
    if not isinstance(output, ToolOutput):
        return failed(f"The tool {tool.name} broke: it answered {type(answer).__name__}, which is no text.")
    with anyio.CancelScope(shield=True):  # It has happened: an interruption must not make it look undone.
        bounded = await bounding.bound(output, limits, keep)
    return Settlement(
        output=bounded.text,
        title=output.title or tool.name,
        metadata={**output.metadata, **bounded.metadata()},
        attachments=output.attachments,
    )


def denied(message: str, *, stops: bool = False) -> Settlement:
    """A call that a person or a rule did not allow; `stops` ends the work with it."""
    metadata = {STOPPED: True} if stops else {}
    return Settlement(output=message, outcome="denied", metadata=metadata, stops=stops)


def failed(message: str, *, outcome: Outcome = "failed", metadata: JsonMap | None = None) -> Settlement:
    """A call that did not succeed, in words for the model."""
    return Settlement(output=message, metadata=metadata or {}, outcome=outcome)

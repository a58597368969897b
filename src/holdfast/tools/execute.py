"""Carries out one call: finds its tool, runs it, and turns whatever happens into what is recorded.

What must stay true: every call comes back as a `Settlement` that can be recorded, or waits for the user; what
a model did wrong comes back in words that it can act on; whatever a tool raises or answers, it fails its own
call and nothing else. Cancellation passes through: an interrupted call is settled by its caller.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.schema.wire import JsonMap
from holdfast.text import UNKNOWN_SIGN, printable
from holdfast.toolkit.cancellation import is_cancelled
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import Attachment, ToolDenied, ToolFailure, ToolOutput, ToolParked
from holdfast.tools import bound, pictures
from holdfast.tools.bound import OutputLimits
from holdfast.tools.plain import described, plain
from holdfast.tools.registry import Toolset

Outcome = Literal["failed", "denied", "interrupted", "unknown"]
Keep = Callable[[str], Awaitable[str | None]]
"""Keeps a complete text in a Managed Tool Output File and answers its path; None when it could not."""
Shape = Callable[[ToolOutput], Awaitable[ToolOutput]]
"""Changes what a tool answered, before it is bounded and recorded."""

STRUCTURED: Final = "structured"
"""In the metadata of a completed call: the structured value that its tool answered, unchanged."""
STOPPED: Final = "stopped"
"""In the metadata of a call: the user's rejection ended the work here, until the next prompt."""


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
    returned: Callable[[], None] = lambda: None,
    shape: Shape | None = None,
    limits: OutputLimits,
    keep: Keep,
) -> Settlement:
    """Run the call. `invalid` is what stood in the place of arguments; a `closed` tool is not to be used.

    `returned` is called when the tool has ended by itself: from then on only its output is seen to.
    """
    tool = toolset.find(name)
    if tool is None and (why := toolset.why_absent(name)) is not None:
        return failed(why)
    if tool is None:
        known = ", ".join(each.name for each in toolset.tools) or "none"
        return failed(
            f"There is no tool called {printable(name[:80], UNKNOWN_SIGN)}. The tools are: {known}."
        )
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
        # Whatever it promised: the types of the user's own tool are not checked.
        answer: object = await tool.run(context, input)
    except ToolParked:
        raise
    except BaseException as error:
        if is_cancelled(error):
            raise
        if not isinstance(error, ToolFailure):
            return broken(tool.name, described(error))
        happened = _given_up(tool, error, limits, keep)
    else:
        happened = _answered(tool, answer, shape, limits, keep)
    returned()
    with anyio.CancelScope(shield=True):  # It has happened: an interruption must not make it look undone.
        return await happened
    raise AssertionError("nothing cancels a shield")


async def _answered(
    tool: Tool, answer: object, shape: Shape | None, limits: OutputLimits, keep: Keep
) -> Settlement:
    try:
        return await _succeeded(tool, answer, shape, limits, keep)
    except InvalidInput as error:
        why = f"what it answered cannot be recorded: {error}. What it did has happened."
        return broken(tool.name, why)
    except Exception as error:  # noqa: BLE001 - an object of the tool's may raise anything when it is used
        return broken(tool.name, f"what it answered cannot be recorded ({described(error)}).")


async def _succeeded(
    tool: Tool, answer: object, shape: Shape | None, limits: OutputLimits, keep: Keep
) -> Settlement:
    given = ToolOutput(text=answer) if isinstance(answer, str) else answer
    if not isinstance(given, ToolOutput):
        return broken(tool.name, f"it answered {type(answer).__name__}, which is no text.")
    if given.structured is None and not given.attachments:
        output = _checked(given)
    else:  # They may be large, and measuring them would be felt by everything else.
        output = await pictures.fit(await anyio.to_thread.run_sync(_checked, given), limits.pictures)
    if shape is not None:
        output = await shape(output)
    bounded = await bound.bound(output, limits, keep)
    kept = {} if output.structured is None else {STRUCTURED: output.structured}
    return Settlement(
        output=bounded.text,
        title=output.title or tool.name,
        metadata={**output.metadata, **bounded.metadata(), **kept},
        attachments=output.attachments,
    )


class _Structured(msgspec.Struct):
    structured: JsonMap | None


def _checked(given: ToolOutput) -> ToolOutput:
    """The output as a record brings it back; its text is seen to when it is bounded."""
    for name, text in (("text", given.text), ("title", given.title)):
        if not isinstance(text, str):
            raise InvalidInput(f"its {name} is {type(text).__name__}, not str")
    kept = plain(_Structured, _Structured(given.structured), exact=True)
    rest = plain(ToolOutput, replace(given, text="", structured=None))
    return replace(rest, text=given.text, structured=kept.structured)


async def _given_up(tool: Tool, failure: ToolFailure, limits: OutputLimits, keep: Keep) -> Settlement:
    """The result of a tool that failed: its message counts, whatever it noted beside it."""
    try:
        words = str(failure)
    except Exception:  # noqa: BLE001 - it was given something that has no words
        return broken(tool.name, type(failure).__name__)
    text_bounded = await bound.bound(ToolOutput(text=words), limits, keep)
    cut = text_bounded.metadata() if text_bounded.truncated else {}
    if isinstance(failure, ToolDenied):
        refused = denied(text_bounded.text, stops=failure.stops is True)
        return replace(refused, metadata={**refused.metadata, **cut})
    try:
        noted = plain(JsonMap, failure.metadata or {})
    except InvalidInput:
        noted = {}
    return failed(text_bounded.text, metadata={**noted, **cut})


def broken(name: str, why: str) -> Settlement:
    """A call whose tool is at fault."""
    return failed(f"The tool {name} broke: {why}")


def denied(message: str, *, stops: bool = False, metadata: JsonMap | None = None) -> Settlement:
    """A call that the user or a rule did not allow; `stops` ends the work with it."""
    metadata = {**(metadata or {}), **({STOPPED: True} if stops else {})}
    return Settlement(output=message, outcome="denied", metadata=metadata, stops=stops)


def failed(message: str, *, outcome: Outcome = "failed", metadata: JsonMap | None = None) -> Settlement:
    """A call that did not succeed, in words for the model."""
    return Settlement(output=message, metadata=metadata or {}, outcome=outcome)

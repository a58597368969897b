"""A tool that runs commands of the model in a box, for stories: as small as such a tool can be."""

from typing import Any

from holdfast.app import Holdfast
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from holdfast.toolkit.output import ToolFailure, ToolOutput


@tool(name="sh", permission="bash")
async def sh(context: ToolContext, command: str, reason: str | None = None) -> ToolOutput:
    """Run a command."""
    await context.ask("bash", [command])
    box = await context.box([command], always=["*"], unconfined=reason)
    output = b""
    async with context.spawn(["/bin/sh", "-c", command], box=box) as process:
        assert process.stdout is not None
        async for piece in process.stdout:
            output += piece
        code = await process.wait()
    if box.failure is not None:
        raise ToolFailure(box.failure)
    text = output.decode()
    stopped, changed = await box.stopped(text), await box.changed()
    return ToolOutput(text=text, metadata={"code": code, "sandbox": box.facts, "said": [stopped, changed]})


async def ran(hf: Holdfast, session: str, text: str = "go", **options: Any) -> list[tuple[str, Any]]:
    """The calls of a session after a prompt: the output and the box's facts, or the error."""
    await hf.sessions.process(session, text, **options)
    found: list[tuple[str, Any]] = []
    for message in (await hf.sessions.messages(session)).messages:
        for part in message.parts:
            state = getattr(part, "state", None)
            if isinstance(state, ToolCompleted):
                found.append((state.output, (state.metadata or {}).get("sandbox")))
            elif isinstance(state, ToolError):
                found.append(("error", state.error))
    return found

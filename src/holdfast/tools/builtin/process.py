"""The tool `process`: looks after the commands that `bash` started in the background.

It is judged by the permission of `bash`: the commands were allowed when they were started, and what is
written to one is asked for like a command.
"""

from typing import Annotated, Final, Literal

import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.toolkit.processes import ProcessInfo
from holdfast.tools.shell import boxed
from holdfast.tools.shell.output import text_of

READ_BYTES_MAX: Final = 40_000
WAIT_MS: Final = 30_000
WAIT_MS_MAX: Final = 600_000

DESCRIPTION = """Look after the processes that `bash` started in the background.

`list` them; `read` what one has printed since the last time, or from `cursor` on; `wait` until it ends, at \
most `timeout` ms; `write` `text` to its input (an empty one ends the input); `end` it."""

Action = Literal["list", "read", "wait", "write", "end"]


def process_tool() -> Tool:
    """The tool."""

    @tool(name="process", permission="bash", description=DESCRIPTION)
    async def process(
        context: ToolContext,
        *,
        action: Action,
        id: Annotated[str, "The process; needed but for `list`"] = "",
        text: str = "",
        cursor: Annotated[int | None, "A byte of its output"] = None,
        timeout: Annotated[int, msgspec.Meta(ge=1, le=WAIT_MS_MAX)] = WAIT_MS,  # noqa: ASYNC109 - wire
    ) -> ToolOutput:
        if action == "list":
            return _listed(context)
        if not id:
            raise ToolFailure("Say which process: give its `id`, which `list` shows.")
        if action == "write":
            await context.ask("bash", [f"process write {text}"], metadata={"command": text, "process": id})
            with context.effect(f"anything that {id} reaches"):
                await context.processes.write(id, text)
        elif action == "end":
            with context.effect(f"whether {id} runs"):
                await context.processes.end(id)
        elif action == "wait":
            await context.processes.wait(id, timeout)
        return await _read(context, id, cursor)

    return process


def _listed(context: ToolContext) -> ToolOutput:
    found = context.processes.list()
    lines = [f"{each.id}: {each.command.split(chr(10))[0][:200]} ({_state(each)})" for each in found]
    return ToolOutput(
        text="\n".join(lines) or "No process was started in the background.",
        title="list",
        metadata={"count": len(found)},
    )


async def _read(context: ToolContext, id: str, cursor: int | None) -> ToolOutput:
    data, at = await context.processes.read(id, cursor, READ_BYTES_MAX)
    info = next(each for each in context.processes.list() if each.id == id)
    notes = [f"({id}: {_state(info)}; cursor {at}.)"]
    if at < info.size and len(data) == READ_BYTES_MAX:
        notes.append(f"(There is more: {info.size - at} bytes. Read on, or search {info.path}.)")
    shown = text_of(data).rstrip("\n") or "(no new output)"
    stopped = await context.processes.stopped(id, shown)
    if stopped:
        notes.append(boxed.stopped_note(stopped))
    metadata: JsonMap = {
        "process": id,
        "cursor": at,
        "exit": info.exit,
        "running": info.end is None,
        "stopped": list(stopped),
    }
    return ToolOutput(text="\n\n".join((shown, "\n".join(notes))), title=id, metadata=metadata)


def _state(info: ProcessInfo) -> str:
    if info.end is None:
        return f"runs, pid {info.pid}, {info.size} bytes of output"
    return "was ended" if info.exit is None else f"ended with exit code {info.exit}"

"""Tools for stories."""

import subprocess
import sys
from typing import Any

import anyio

from holdfast.clock import SystemClock
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.tools.standard import standard_tools

NOTHING: Any = None
STANDARD = sorted(
    standard_tools(NOTHING, SystemClock(), NOTHING, NOTHING, NOTHING).names() - {"apply_patch", "question"}
)
"""The names of the built-in tools that the model of the stories is shown."""


class Deed:
    """A tool with an effect that can be counted, and held at a gate."""

    def __init__(self, name: str = "act", *, repeatable: bool = False, ask: bool = True) -> None:
        self.done: list[str] = []
        self.begun = anyio.Event()
        self.gate = anyio.Event()
        self.gate.set()

        @tool(name=name, repeatable=repeatable)
        async def act(context: ToolContext, what: str) -> str:
            """Do something."""
            if ask:
                await context.ask(name, [what], always=["*"], metadata={"what": what})
            self.begun.set()
            await self.gate.wait()
            self.done.append(what)
            return f"did {what}"

        self.tool: Tool = act


def command(work: str) -> Tool:
    """A tool that can write anything, as `bash` can: it runs a line of Python."""

    @tool(name="act", description="Runs a line of Python.")
    async def act(context: ToolContext, line: str = work) -> str:
        subprocess.run([sys.executable, "-c", line], cwd=context.directory, check=True)
        return "done"

    return act

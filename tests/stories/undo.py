"""What the stories of undo share: an agent that writes files, and what a file holds."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast.app import Holdfast
from holdfast.sessions.undo.result import Undo
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool

ALLOWED = {"edit": "allow", "read": "allow", "act": "allow"}
LINES = "".join(f"line {number}\n" for number in range(1, 21))


def write(path: str, content: str) -> Call:
    """A call that writes a file."""
    return Call("write", {"filePath": path, "content": content})


def edit(path: str, old: str, new: str) -> Call:
    """A call that edits a file."""
    return Call("edit", {"filePath": path, "oldString": old, "newString": new})


def read(path: str) -> Call:
    """A call that reads a file."""
    return Call("read", {"filePath": path})


def act(line: str) -> Call:
    """A call that runs a line of Python."""
    return Call("act", {"line": line})


def turn(*calls: Call) -> list[Step]:
    """A turn with one step a call, and a word at the end."""
    return [*(Step(call) for call in calls), Step(Say("done"))]


def command() -> Tool:
    """A tool that can write anything, as `bash` can."""

    @tool(name="act", description="Runs a line of Python.")
    async def act(context: ToolContext, line: str) -> str:
        subprocess.run([sys.executable, "-c", line], cwd=context.directory, check=True)
        return "done"

    return act


def files(top: Path) -> dict[str, str]:
    """Every file of a folder, without git's own."""
    return {
        str(path.relative_to(top)): path.read_text()
        for path in sorted(top.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def outcomes(undo: Undo) -> dict[str, Any]:
    """What became of each file."""
    return {each.path: each.outcome for each in undo.files}


async def said(hf: Holdfast, session: str, *, reverted: bool = False) -> list[str]:
    """The prompts and answers of a session, in words."""
    page = await hf.sessions.messages(session, reverted=reverted)
    return [part.text for message in page.messages for part in message.parts if hasattr(part, "text")]

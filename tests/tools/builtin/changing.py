"""A project for the tools that change files, and a session that has read some of them."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.location.filesystem import Filesystem
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin.apply_patch import apply_patch_tool
from holdfast.tools.builtin.change import Locks
from holdfast.tools.builtin.edit import edit_tool
from holdfast.tools.builtin.write import write_tool
from tests.tools.fake_context import FakeContext


class World:
    """A checkout, and something outside of it."""

    def __init__(self, top: Path) -> None:
        top = Path(os.path.realpath(top))
        self.top, self.outside = top / "project", top / "outside"
        self.top.mkdir()
        self.outside.mkdir()
        self.context = FakeContext(self.top)
        locks = Locks()

        def filesystem(context: Any) -> Filesystem:
            return Filesystem(context.directory, context.worktree)

        makes = (write_tool, edit_tool, apply_patch_tool)
        self.tools: dict[str, Tool] = {
            tool.name: tool for tool in (make(filesystem, locks) for make in makes)
        }

    def file(self, name: str, data: str | bytes, *, read: bool = True) -> Path:
        """A file that the session has read, or not."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = data.encode() if isinstance(data, str) else data
        path.write_bytes(content)
        if read:
            self.context.known[path] = hashlib.sha256(content).hexdigest()
        return path

    async def run(self, tool: str, **input: Any) -> ToolOutput:
        answer = await self.tools[tool].run(self.context, input)
        assert isinstance(answer, ToolOutput)
        return answer

    async def failure(self, tool: str, **input: Any) -> str:
        before = self.content()
        with pytest.raises(ToolFailure) as caught:
            await self.run(tool, **input)
        assert self.content() == before, "a call that fails changes nothing"
        return str(caught.value)

    async def patch(self, *lines: str) -> ToolOutput:
        return await self.run("apply_patch", patchText=text_of(*lines))

    async def patch_failure(self, *lines: str) -> str:
        return await self.failure("apply_patch", patchText=text_of(*lines))

    def content(self) -> dict[str, bytes]:
        """Every file of the project and beside it, by its path."""
        return {
            str(path.relative_to(self.top.parent)): path.read_bytes()
            for path in sorted(self.top.parent.rglob("*"))
            if path.is_file()
        }


def text_of(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])

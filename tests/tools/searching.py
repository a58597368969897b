"""A project for the tools that look for files, with real programs."""

import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from holdfast.location.filesystem import Filesystem
from holdfast.toolkit.box import Box
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin import access
from tests.tools.fake_context import FakeContext


class ProgramContext(FakeContext):
    """Runs programs in a group of their own, as the runtime does; `spawned` are their commands."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.spawned: list[list[str]] = []

    def spawn(  # type: ignore[override]
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        strays: bool = False,
        noted: bool = True,
        box: Box | None = None,
    ) -> AbstractAsyncContextManager[Process]:
        self.spawned.append(list(command))
        return _spawned(list(command), cwd or self.directory, env)


@asynccontextmanager
async def _spawned(command: list[str], cwd: Path, env: Mapping[str, str] | None) -> AsyncIterator[Process]:
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()


class Project:
    """A checkout, something outside, a folder open to all, and one that belongs to Holdfast."""

    def __init__(self, top: Path) -> None:
        self.top = top / "project"
        self.outside = top / "outside"
        self.kept = top / "closed" / "kept"
        self.closed = top / "closed"
        for folder in (self.top / ".git", self.outside, self.kept):
            folder.mkdir(parents=True)
        self.context = ProgramContext(self.top)
        self.opened: list[Path] = []
        self.reach = access.reaching(self.filesystem, self._opened)

    def filesystem(self, context: Any) -> Filesystem:
        return Filesystem(context.directory, context.worktree, [self.kept], closed=[self.closed])

    async def _opened(self, context: object) -> list[Path]:
        return self.opened

    def write(self, name: str, data: str | bytes = "x\n") -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    async def run(self, tool: Tool, **input: Any) -> ToolOutput:
        answer = await tool.run(self.context, {key: _text(value) for key, value in input.items()})
        assert isinstance(answer, ToolOutput)
        return answer

    async def failure(self, tool: Tool, **input: Any) -> str:
        with pytest.raises(ToolFailure) as caught:
            await self.run(tool, **input)
        return str(caught.value)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value

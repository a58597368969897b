"""The world of one running call, as its tool sees it."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.location.guard import Guard
from holdfast.runtime.asking import Asking
from holdfast.runtime.groups import Groups
from holdfast.runtime.recorder import Recorder, part_put
from holdfast.schema.part import ToolPart
from holdfast.schema.request import ToolRef
from holdfast.schema.tool_state import ToolRunning
from holdfast.schema.wire import JsonMap
from holdfast.store.host import Host

if TYPE_CHECKING:
    from anyio.abc import Process


class Call:
    """Fills `tool.context.ToolContext`."""

    def __init__(
        self,
        part: ToolPart,
        *,
        agent: str,
        directory: Path,
        worktree: Path,
        asking: Asking,
        recorder: Recorder,
        guard: Guard,
        host: Host,
    ) -> None:
        self.part = part
        self.agent = agent
        self.directory = directory
        self.worktree = worktree
        self.cancelled = False
        self.over = False
        """Settled: nothing that the tool still does is recorded."""
        self._asking = asking
        self._recorder = recorder
        self._groups = Groups(guard, host, lambda noted: self.progress(metadata=noted))

    @property
    def session_id(self) -> str:
        return self.part.session_id

    @property
    def message_id(self) -> str:
        return self.part.message_id

    @property
    def call_id(self) -> str:
        return self.part.call_id

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: JsonMap | None = None,
    ) -> None:
        """Return when every pattern is allowed; `ToolDenied` otherwise."""
        await self._asking.ask(
            permission,
            patterns,
            always=always,
            metadata=metadata or {},
            tool=ToolRef(message_id=self.part.message_id, call_id=self.part.call_id),
        )

    async def progress(self, *, title: str | None = None, metadata: JsonMap | None = None) -> None:
        """Show how far the call has come."""
        state = self.part.state
        if not isinstance(state, ToolRunning) or self.over:
            return
        shown = replace(
            state,
            title=title if title is not None else state.title,
            metadata={**(state.metadata or {}), **(metadata or {})} or None,
        )
        self.part = replace(self.part, state=shown)
        await self._recorder.commit(part_put(self.part))

    def spawn(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> "AbstractAsyncContextManager[Process]":
        """Run a program in a process group of its own, for as long as the block lasts."""
        return self._groups.spawn(command, cwd=cwd or self.directory, env=env)

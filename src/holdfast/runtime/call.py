"""The world of one running call, as its tool sees it."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from holdfast.runtime.asking import Asking
from holdfast.runtime.recorder import Recorder, part_put
from holdfast.schema.part import ToolPart
from holdfast.schema.request import ToolRef
from holdfast.schema.tool_state import ToolRunning
from holdfast.schema.wire import JsonMap


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
    ) -> None:
        self.part = part
        self.agent = agent
        self.directory = directory
        self.worktree = worktree
        self.cancelled = False
        self._asking = asking
        self._recorder = recorder

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
        if not isinstance(state, ToolRunning):
            return
        shown = replace(
            state,
            title=title if title is not None else state.title,
            metadata={**(state.metadata or {}), **(metadata or {})} or None,
        )
        self.part = replace(self.part, state=shown)
        await self._recorder.commit(part_put(self.part))

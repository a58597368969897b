"""What a running call is given: where it is, and callables that the runtime binds.

A tool reaches nothing else of ours: upward information travels through `progress` and its result. What the
later parts add (`commit` under the runner's fence, `publish`, `admit`) joins here.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.schema.wire import JsonMap

if TYPE_CHECKING:
    from anyio.abc import Process


class ToolContext(Protocol):
    """The world of one call."""

    @property
    def session_id(self) -> str: ...
    @property
    def message_id(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def agent(self) -> str:
        """The agent of the turn that made the call; a later switch changes nothing for it."""

    @property
    def directory(self) -> Path:
        """Where the session works; relative paths start here."""

    @property
    def worktree(self) -> Path:
        """The top of the project."""

    @property
    def cancelled(self) -> bool:
        """Whether the call is to end; a tool that loops without waiting looks here."""

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: JsonMap | None = None,
    ) -> None:
        """Return when every pattern is allowed; `ToolDenied` otherwise. Called before any side effect."""

    async def progress(self, *, title: str | None = None, metadata: JsonMap | None = None) -> None:
        """Show how far the call has come: live at once, durable with the next checkpoint."""

    def spawn(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> "AbstractAsyncContextManager[Process]":
        """Run a program in a process group of its own, with no input and with its errors in its output.

        The group ends with the block: TERM, then KILL after 3 s; also when this process is killed or paused.
        """

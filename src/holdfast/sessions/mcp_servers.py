"""The MCP servers of sessions: connected by the settings of their workspaces, before a turn."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from holdfast.errors import ContextError
from holdfast.location.box import start
from holdfast.location.box.boxes import Boxes
from holdfast.location.box.policy import Mode
from holdfast.location.guard import Guard
from holdfast.person import directories
from holdfast.plugins.dispatcher import Dispatcher
from holdfast.schema.config import SandboxConfig
from holdfast.schema.mcp_status import McpStatus
from holdfast.schema.session import Session
from holdfast.tools.mcp.connections import Connections
from holdfast.tools.mcp.launch import Launching
from holdfast.tools.mcp.server import Server, configured
from holdfast.tools.registry import Registry
from holdfast.workspace.box_policy import box_policy
from holdfast.workspace.command_environment import command_environment
from holdfast.workspace.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.tools.mcp.wire.connect import World

TEMPORARY = "mcp_"
"""How the names of servers' temporary folders begin."""


class McpServers:
    """`own` answers the registry of a session without servers."""

    def __init__(
        self,
        connections: Connections,
        own: Callable[[Session], Registry],
        plugins: Callable[[Workspace], Dispatcher],
        *,
        guard: Guard,
        boxes: Boxes,
        stored_at: Path | None,
    ) -> None:
        self._connections = connections
        self._own = own
        self._plugins = plugins
        self._guard = guard
        self._boxes = boxes
        self._stored_at = stored_at

    async def connect(self, session: Session, workspace: Workspace) -> None:
        """Connect the servers that the settings of a session's directory name, and wait for new ones."""
        directory, servers = session.directory, configured(workspace.loaded.config)
        if not servers and self._connections.at(directory) is None:
            return
        below = self._own(session)
        await self._connections.connect(directory, servers, below, lambda: self.world(workspace))

    def tools(self, session: Session) -> Registry:
        """The registry of a session: with the tools of its servers, where it has some."""
        below = self._own(session)
        here = self._connections.at(session.directory)
        return below if here is None or here.below is not below else here.registry

    def status(self, directory: str | os.PathLike[str]) -> dict[str, McpStatus]:
        """How the servers of a directory are, by name."""
        here = self._connections.at(os.path.realpath(directory))
        return {} if here is None else {name: each.status for name, each in here.keepers.items()}

    def world(self, workspace: Workspace) -> "World":
        """What connections in a workspace need."""
        from holdfast.tools.mcp.wire.connect import World

        async def launch(server: Server) -> AbstractContextManager[Launching]:
            return await self._launch(server, workspace)

        return World(launch=launch, guard=self._guard, worktree=workspace.places.worktree)

    async def _launch(self, server: Server, workspace: Workspace) -> AbstractContextManager[Launching]:
        entry = server.entry
        cwd = workspace.places.directory / os.path.expanduser(entry.cwd or ".")  # noqa: ASYNC240, PTH111 - no wait
        if not await anyio.to_thread.run_sync(cwd.is_dir):
            raise ContextError(f"its folder {cwd} does not exist")
        env = await command_environment(workspace, self._plugins(workspace), cwd)
        made = _Start(list(entry.command or ()), {**env, **(entry.environment or {})}, cwd)
        if not entry.box:
            return contextlib.nullcontext(made)
        level = await self._boxes.level(directories.state())
        if level.level != "full":
            raise ContextError(f"it is to run in a box, and the box is {level}")
        settings = workspace.loaded.config.sandbox or SandboxConfig()
        mode: Mode = "read-only" if settings.mode == "read-only" else "workspace"
        policy = await anyio.to_thread.run_sync(
            lambda: box_policy(
                workspace.places,
                settings,
                mode,
                stored_at=self._stored_at,
                owner=f"{TEMPORARY}{server.identity}",
            )
        )
        return _boxed(made, start.prepared(policy))


class _Start:
    """Fills `tools.mcp.launch.Launching`."""

    def __init__(
        self, command: list[str], env: dict[str, str], cwd: Path, box: start.Start | None = None
    ) -> None:
        self.command = command
        self.env = env
        self.cwd = cwd
        self._box = box

    @property
    def descriptors(self) -> tuple[int, ...]:
        return () if self._box is None else self._box.descriptors

    def began(self) -> None:
        if self._box is not None:
            self._box.began()


@contextlib.contextmanager
def _boxed(made: _Start, prepared: AbstractContextManager[start.Start]) -> Iterator[Launching]:
    """The start of a program in a box."""
    with prepared as box:
        yield _Start(box.command(made.command), {**made.env, **box.environment()}, made.cwd, box)

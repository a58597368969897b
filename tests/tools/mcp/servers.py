"""Servers for tests: the entries of the settings that start them, and connections without a session."""

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import processes
from holdfast.location.guard import Guard
from holdfast.schema.config import Config
from holdfast.schema.program_entry import McpEntry
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.declare import Answer
from holdfast.toolkit.output import ToolFailure
from holdfast.tools.mcp.connections import Connections
from holdfast.tools.mcp.directory_servers import DirectoryServers
from holdfast.tools.mcp.launch import Launching
from holdfast.tools.mcp.server import Server, configured
from holdfast.tools.registry import Registry
from tests.tools.fake_context import FakeContext

if TYPE_CHECKING:
    from holdfast.tools.mcp.wire.connect import World

PATIENT_MS = 60_000
RAW = Path(__file__).parent / "raw_server.py"


def entry(**spec: Any) -> dict[str, Any]:
    """The entry of a server that is a program of ours (`raw_server.py`); a busy machine may start it late."""
    command = [sys.executable, "-I", str(RAW), json.dumps(spec)]
    return {"type": "local", "command": command, "timeout": PATIENT_MS}


class _Started:
    def __init__(self, server: Server, cwd: Path) -> None:
        self.command = list(server.entry.command or ())
        self.env = {"PATH": os.environ["PATH"], **(server.entry.environment or {})}
        self.cwd = cwd
        self.descriptors: tuple[int, ...] = ()

    def began(self) -> None: ...


class Servers:
    """The servers of one directory, and what was heard of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.events: list[tuple[str, JsonMap]] = []
        self.warnings: list[str] = []
        self.guard = Guard()
        self.below = Registry()
        self.connections = Connections(lambda *event: self.events.append(event), self.warnings.append)

    async def connect(self, entries: Mapping[str, JsonMap | Server]) -> None:
        """Connect as a turn does."""
        named = {name: given for name, given in entries.items() if not isinstance(given, Server)}
        made = configured(Config(mcp={name: McpEntry(**given) for name, given in named.items()}))
        servers = {
            name: given if isinstance(given, Server) else made[name] for name, given in entries.items()
        }
        await self.connections.connect(str(self.directory), servers, self.below, self._world)

    def _world(self) -> "World":
        from holdfast.tools.mcp.wire.connect import World

        async def launch(server: Server) -> AbstractContextManager[Launching]:
            return contextlib.nullcontext(_Started(server, self.directory))

        return World(launch=launch, guard=self.guard, worktree=self.directory)

    @property
    def here(self) -> DirectoryServers:
        """The servers of the directory."""
        found = self.connections.at(str(self.directory))
        assert found is not None
        return found

    @property
    def states(self) -> dict[str, tuple[str, str | None]]:
        """How each is, and why."""
        return {name: (each.status.status, each.status.error) for name, each in self.here.keepers.items()}

    def names(self) -> list[str]:
        """The tools that are offered."""
        return sorted(self.here.registry.names())

    async def call(self, name: str, context: FakeContext | None = None, **arguments: Any) -> Answer:
        """Call a tool as the engine does."""
        found = self.here.registry.current(name)
        assert found is not None, self.names()
        return await found.tool.run(context or FakeContext(self.directory), arguments)

    async def failure(self, name: str, context: FakeContext | None = None, **arguments: Any) -> str:
        """What a call that fails tells the model."""
        try:
            given = await self.call(name, context, **arguments)
        except ToolFailure as failed:
            return str(failed)
        raise AssertionError(f"it succeeded: {given}")


@asynccontextmanager
async def servers(directory: Path) -> AsyncIterator[Servers]:
    """Connections until the block ends; nothing of them is left then."""
    made = Servers(directory)
    try:
        yield made
    finally:
        await made.connections.close()
        made.guard.close()


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    return processes.started(pid) != ""

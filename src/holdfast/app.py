"""Builds every room and closes it again: the only file that imports them all."""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from holdfast import flags
from holdfast.clock import Clock, SystemClock
from holdfast.closing import Closing
from holdfast.feed.tail import Feed
from holdfast.schema.ids import Mint
from holdfast.schema.session import Session
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.agents import AgentService
from holdfast.sessions.folder_trust import FolderTrust
from holdfast.sessions.service import SessionService
from holdfast.sessions.storage import Storage
from holdfast.store.base import Store
from holdfast.store.host import Host, ThisHost
from holdfast.store.open import open_store
from holdfast.store.store_url import find_place

if TYPE_CHECKING:  # Loaded by the first prompt: a process that only reads does not wait for the engine.
    from holdfast.config.checks import Check
    from holdfast.context.registry import SystemContextRegistry
    from holdfast.location.skills import Skill
    from holdfast.location.terminal.environment import PtyEnvironment
    from holdfast.net.stream import Http
    from holdfast.provider.port import Provider
    from holdfast.provider.wire.wired import Wires
    from holdfast.runtime.engine.engine import OnAsk, Presence
    from holdfast.runtime.engine.patience import PatientStore
    from holdfast.runtime.process.coordinator import Coordinator
    from holdfast.schema.mcp_status import McpStatus
    from holdfast.schema.wire import JsonMap
    from holdfast.sessions.mcp_servers import McpServers
    from holdfast.sessions.prompts import Prompts
    from holdfast.sessions.terminals import TerminalService
    from holdfast.sessions.workspaces import Workspaces
    from holdfast.tools.registry import Registry
    from holdfast.workspace.plugins import WorkspacePlugins
    from holdfast.workspace.watches import Watches
    from holdfast.workspace.workspace import Workspace


SWEEP_S = 3600.0
WARNED_MAX = 1_000


class Holdfast:
    """An open runtime: its store, its feed, its sessions and agents; `storage` has the records by key."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        host: Host,
        *,
        provider: "Provider | None" = None,
        presence: "Presence | None" = None,
        on_ask: "OnAsk | None" = None,
        workspace: "Callable[[Session], Workspace] | None" = None,
        stored_at: Path | None = None,
        pty_environment: "PtyEnvironment | None" = None,
    ) -> None:
        self.store = store
        self._stored_at = stored_at
        self.clock = clock
        self.host = host
        self.mint = Mint(clock)
        self._watches: Watches | None = None
        self.feed = Feed(store, clock, self.mint, hold=self._hold)
        self._access = StoreAccess(store, clock, self.mint, host)
        self.sessions = SessionService(self._access, self._prompting_now)
        self.agents = AgentService(self.sessions)
        self.trust = FolderTrust(self._access)
        self.storage = Storage(self._access)
        self._provider = provider
        self._presence = presence
        self._on_ask = on_ask
        self._workspace = workspace
        self._pty_environment = pty_environment
        self._workspaces_made: Workspaces | None = None
        self._plugins: WorkspacePlugins | None = None
        self._terminals: TerminalService | None = None
        self._tools: Registry | None = None
        self._tools_at: dict[str, Registry] = {}
        self._context: SystemContextRegistry | None = None
        self._context_at: dict[str, SystemContextRegistry] = {}
        self._http: Http | None = None
        self._wires: Wires | None = None
        self._coordinator: Coordinator | None = None
        self._prompting: Prompts | None = None
        self._servers: McpServers | None = None
        self._closing = Closing("terminals", "coordinator", "watches", "wires", "http", "feed", "store")
        self._closing.add("feed", self.feed.close)
        self._closing.add("store", store.close)

    @property
    def tools(self) -> "Registry":
        """The tools of the whole application; register more here."""
        if self._tools is None:
            from holdfast.tools.standard import standard_tools

            self._tools = standard_tools(
                self._patient,
                self.clock,
                self._skills_of,
                self._http_now,
                self._checks_of,
                stored_at=self._stored_at,
            )
        return self._tools

    @cached_property
    def _patient(self) -> "PatientStore":
        """The store for tools: a call does not fail because it is unreachable for a moment."""
        from holdfast.runtime.engine.patience import PatientStore

        return PatientStore(self.store, lambda: None)

    async def _skills_of(self, session: str) -> "list[Skill]":
        from holdfast.context.sources import skills

        here = await self._patient.repeat(self._workspace_of, session)
        if here is None:
            return []
        find = skills.finder(here.places, here.loaded, here.trusted)
        return list(await anyio.to_thread.run_sync(find, []))

    async def _checks_of(self, session: str) -> "tuple[Check, ...]":
        from holdfast.config.checks import checks

        here = await self._patient.repeat(self._workspace_of, session)
        return () if here is None else checks(here.loaded.config)

    @property
    def terminals(self) -> "TerminalService":
        """The terminals of this process."""
        if self._terminals is None:
            from holdfast.location.terminal.environment import no_overlay
            from holdfast.sessions.terminals import TerminalService

            self._terminals = TerminalService(
                self._access,
                self.feed,
                self._workspaces.of,
                self._plugins_now(),
                self._pty_environment or no_overlay,
            )
            self._closing.add("terminals", self._terminals.close)
        return self._terminals

    @property
    def _workspaces(self) -> "Workspaces":
        if self._workspaces_made is None:
            from holdfast.sessions.workspaces import Workspaces

            self._workspaces_made = Workspaces(self._access, self.trust, self._workspace)
        return self._workspaces_made

    def _plugins_now(self) -> "WorkspacePlugins":
        if self._plugins is None:
            from holdfast.workspace.plugins import WorkspacePlugins

            self._plugins = WorkspacePlugins(_warn)
        return self._plugins

    def tools_at(self, directory: str | os.PathLike[str]) -> "Registry":
        """The tools of one directory, over those of the application."""
        from holdfast.tools.registry import Registry

        place = os.path.realpath(directory)
        if place not in self._tools_at:
            self._tools_at[place] = Registry(self.tools)
        return self._tools_at[place]

    def _tools_for(self, session: Session) -> "Registry":
        return self._tools_at.get(session.directory) or self.tools

    @property
    def context(self) -> "SystemContextRegistry":
        """What the application contributes to the System Context of every session."""
        from holdfast.context import keys
        from holdfast.context.registry import SystemContextRegistry

        if self._context is None:
            self._context = SystemContextRegistry(beside=self._context_at.values, reserved=(keys.BUILT_IN,))
        return self._context

    def context_at(self, directory: str | os.PathLike[str]) -> "SystemContextRegistry":
        """What is contributed to the System Context of one directory, besides that of the application."""
        from holdfast.context import keys
        from holdfast.context.registry import SystemContextRegistry

        here = SystemContextRegistry(beside=lambda: (self.context,), reserved=(keys.BUILT_IN,))
        return self._context_at.setdefault(os.path.realpath(directory), here)

    def _contexts_of(self, session: Session) -> "list[SystemContextRegistry]":
        here = self._context_at.get(session.directory)
        return [each for each in (self._context, here) if each is not None]

    def _http_now(self) -> "Http":
        if self._http is None:
            from holdfast.net.stream import Http

            self._http = Http()
            self._closing.add("http", self._http.aclose)
        return self._http

    def _provider_of(self, workspace: "Workspace") -> "Provider":
        if self._provider is not None:
            return self._provider
        from holdfast.provider.wire.wired import WiredProvider, Wires

        if self._wires is None:
            self._wires = Wires()
            self._closing.add("wires", self._wires.aclose)
        return WiredProvider(self._wires, self.clock, workspace.providers.endpoint)

    def _prompting_now(self) -> "Prompts":
        """The engine, built when it is first needed."""
        if self._prompting is None:
            from holdfast.location.box.boxes import Boxes
            from holdfast.location.guard import Guard
            from holdfast.person import directories
            from holdfast.runtime.engine.engine import Engine, NeverPresent
            from holdfast.runtime.process.coordinator import Coordinator
            from holdfast.sessions import expired_runs
            from holdfast.sessions.brought_tools import BroughtTools
            from holdfast.sessions.mcp_servers import McpServers
            from holdfast.sessions.prompts import Prompts
            from holdfast.tools.mcp.connections import Connections
            from holdfast.tools.standard import managed_output

            output = managed_output(self.clock, trouble=_warn)
            plugins = self._plugins_now()
            guard, boxes = Guard(), Boxes()
            servers = Connections(self._publish, _warn)
            self._servers = McpServers(
                servers, self._tools_for, plugins.of, guard=guard, boxes=boxes, stored_at=self._stored_at
            )
            brought = BroughtTools(self._servers.tools, plugins)
            engine = Engine(
                store=self.store,
                clock=self.clock,
                mint=self.mint,
                host=self.host,
                feed=self.feed,
                provider=self._provider_of,
                workspace=self._workspaces.of,
                tools=brought.of,
                connect=self._servers.connect,
                guard=guard,
                boxes=boxes,
                keep=output.keep,
                presence=self._presence or NeverPresent(),
                on_ask=self._on_ask,
                plugins=plugins.of,
                contexts=self._contexts_of,
                http=self._http_now,
                cache=directories.cache(),
                stored_at=self._stored_at,
                warn=_warn,
                hold=self._hold,
            )

            async def keep_swept() -> None:
                while True:
                    await output.sweep()
                    await expired_runs.prune(self.store, self.clock)
                    await anyio.to_thread.run_sync(_sweep_boxes)
                    await anyio.sleep(SWEEP_S)

            self._coordinator = Coordinator(engine, keep_swept, servers.keep)
            self._closing.add("coordinator", self._coordinator.close)
            self._prompting = Prompts(self._access, engine, self._coordinator)
        return self._prompting

    def _hold(self, session: str) -> AbstractContextManager[None]:
        """Watch the files of a session's project, with the flag."""
        if not flags.enabled(flags.EXPERIMENTAL_WATCHER):
            return nullcontext()
        if self._watches is None:
            from holdfast.workspace.watches import Watches

            self._watches = Watches(self._workspace_of, self._show_file, _warn)
            self._closing.add("watches", self._watches.close)
        return self._watches.hold(session)

    async def _workspace_of(self, session: str) -> "Workspace | None":
        record = await self.store.session(session)
        return None if record is None else await self._workspaces.of(record.value())

    def _show_file(self, path: str, event: str, sessions: frozenset[str]) -> None:
        from holdfast.schema.wire import encode

        self.feed.publish(
            "file.watcher.updated", None, encode({"file": path, "event": event}), concerns=sessions
        )

    def _publish(self, type: str, properties: "JsonMap") -> None:
        """Announce an event of the process, which is no session's."""
        from holdfast.schema.wire import encode

        self.feed.publish(type, None, encode(properties))

    def mcp_status(self, directory: str | os.PathLike[str]) -> "dict[str, McpStatus]":
        """How the MCP servers of a directory are, by name; none before a session has run there."""
        return {} if self._servers is None else self._servers.status(directory)

    async def close(self) -> None:
        """Close every room, the highest first."""
        await self._closing.close()


def _start_backup(path: Path) -> None:
    """Start the daily backup in a process of its own, which lowers its priority.

    The shell that starts it ends at once, so that the backup is no child of this process.
    """
    import subprocess
    import sys

    if not Path(sys.executable).name.startswith("python"):
        return  # `sys.executable` of a frozen program is that program: it would be started again.
    command = [sys.executable, "-P", "-m", "holdfast.cli.daily_backup", str(path)]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            timeout=10,
            check=False,
        )


def _sweep_boxes() -> None:
    from holdfast.errors import ContextError
    from holdfast.location.box import leftovers
    from holdfast.person import directories, temporary

    with contextlib.suppress(ContextError):  # No home, or no temporary folder: nothing was left there.
        leftovers.sweep(directories.state() / leftovers.CACHES, temporary.folder())


_warned: dict[str, None] = {}


def _warn(line: str) -> None:
    """Log a warning for the operator of this process, each line once."""
    import logging

    if line not in _warned:
        _warned[line] = None
        if len(_warned) > WARNED_MAX:
            del _warned[next(iter(_warned))]
        with contextlib.suppress(Exception):  # Of a handler of the embedding program: it ends no work.
            logging.getLogger("holdfast").warning(line)


@asynccontextmanager
async def open(
    store: str | None = None,
    *,
    create: bool = True,
    adopt: bool = False,
    clock: Clock | None = None,
    host: Host | None = None,
    provider: "Provider | None" = None,
    presence: "Presence | None" = None,
    on_ask: "OnAsk | None" = None,
    workspace: "Callable[[Session], Workspace] | None" = None,
    pty_environment: "PtyEnvironment | None" = None,
) -> AsyncIterator[Holdfast]:
    """`async with holdfast.open() as hf:` — the store is a URL; without one, the user's own.

    `provider` answers in the place of the real ones (a script, in tests); `presence` knows whether a user
    would see a question; `on_ask` answers such questions itself; `workspace` gives a session's settings in
    the place of the files; `pty_environment` adds to the environment of terminals.
    """
    host = host or ThisHost()
    # Without a `clock` each store uses its own: PostgreSQL that of the database.
    opened = await open_store(
        store, create=create, adopt=adopt, clock=clock, host=host, start_backup=_start_backup
    )
    await opened.sweep()
    holdfast = Holdfast(
        opened,
        clock or SystemClock(),
        host,
        provider=provider,
        presence=presence,
        on_ask=on_ask,
        workspace=workspace,
        stored_at=find_place(store).path,
        pty_environment=pty_environment,
    )
    try:
        yield holdfast
    finally:
        await holdfast.close()

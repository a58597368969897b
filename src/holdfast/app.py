"""Builds every room and closes it again: the only file that knows them all."""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from holdfast.clock import Clock, SystemClock
from holdfast.feed.tail import Feed
from holdfast.schema.ids import Mint
from holdfast.schema.session import Session
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.agents import AgentService
from holdfast.sessions.service import SessionService
from holdfast.sessions.trusting import Trusting
from holdfast.store.base import Store
from holdfast.store.host import Host, ThisHost
from holdfast.store.open import open_store

if TYPE_CHECKING:  # Loaded by the first prompt: whoever only reads does not pay for the engine.
    from holdfast.context.registry import SystemContextRegistry
    from holdfast.net.stream import Http
    from holdfast.plugins.dispatcher import Dispatcher
    from holdfast.provider.port import Provider
    from holdfast.provider.wire.wired import Wires
    from holdfast.runtime.engine.engine import OnAsk, Presence
    from holdfast.runtime.process.coordinator import Coordinator
    from holdfast.sessions.prompting import Prompting
    from holdfast.tools.registry import Registry
    from holdfast.workspace.workspace import Workspace


AROUND_MS = 1_000
AROUND_MAX = 256
WARNED_MAX = 1_000


class Holdfast:
    """An open runtime: its store, its feed, and what can be asked of sessions."""

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
    ) -> None:
        self.store = store
        self.clock = clock
        self.host = host
        self.mint = Mint(clock)
        self.feed = Feed(store, clock, self.mint)
        self._access = StoreAccess(store, clock, self.mint, host)
        self.sessions = SessionService(self._access, self._prompting_now)
        self.agents = AgentService(self.sessions)
        self.trust = Trusting(self._access)
        self._provider = provider
        self._presence = presence
        self._on_ask = on_ask
        self._around = workspace
        self._known_around: dict[str, tuple[int, Workspace]] = {}
        self._wires: Wires | None = None
        self._tools: Registry | None = None
        self._tools_at: dict[str, Registry] = {}
        self._context: SystemContextRegistry | None = None
        self._context_at: dict[str, SystemContextRegistry] = {}
        self._plugins: dict[str, Dispatcher] = {}
        self._http: Http | None = None
        self._coordinator: Coordinator | None = None
        self._prompting: Prompting | None = None

    @property
    def tools(self) -> "Registry":
        """The tools of the whole application; register more here."""
        if self._tools is None:
            from holdfast.location.filesystem import Filesystem
            from holdfast.person import directories
            from holdfast.tools.builtin.read import read_tool
            from holdfast.tools.builtin.recall import recall_tool
            from holdfast.tools.managed_output import ManagedOutput
            from holdfast.tools.registry import Registry

            kept = directories.data() / "tool-output"
            # The store, credentials and settings of the person are not the model's to read.
            closed = [
                directories.data(),
                directories.config(),
                directories.opencode_data(),
                directories.opencode_config(),
            ]
            self._tools = Registry()
            self._tools.register(recall_tool(self.store, ManagedOutput(kept, self.clock).open))
            self._tools.register(
                read_tool(
                    lambda call: Filesystem(call.directory, call.worktree, readable=[kept], closed=closed)
                )
            )
        return self._tools

    def tools_at(self, directory: str | os.PathLike[str]) -> "Registry":
        """The tools of one directory, over those of the application."""
        from holdfast.tools.registry import Registry

        place = os.path.realpath(directory)
        if place not in self._tools_at:
            self._tools_at[place] = Registry(self.tools)
        return self._tools_at[place]

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
        return self._http

    def _plugins_of(self, workspace: "Workspace") -> "Dispatcher":
        """The plugins of a directory, loaded when they are first needed."""
        from holdfast.plugins.discovery import PluginContext, discover
        from holdfast.plugins.dispatcher import Dispatcher

        place = str(workspace.places.directory)
        if place not in self._plugins:
            where = PluginContext(
                directory=place,
                worktree=str(workspace.places.worktree),
                project=str(workspace.places.worktree),
            )
            named = [
                each if isinstance(each, str) else each[0] for each in workspace.loaded.config.plugin or ()
            ]
            folders = [folder.path for folder in workspace.loaded.folders if folder.trusted]
            found = discover(where, named=named, folders=folders, report=lambda trouble: _warn(str(trouble)))
            self._plugins[place] = Dispatcher(found, lambda trouble: _warn(str(trouble)))
        return self._plugins[place]

    def _prompting_now(self) -> "Prompting":
        """The engine, built when it is first needed."""
        if self._prompting is None:
            from holdfast.person import directories
            from holdfast.runtime.engine.engine import Engine, Nobody
            from holdfast.runtime.process.coordinator import Coordinator
            from holdfast.sessions import expired_runs
            from holdfast.sessions.prompting import Prompting
            from holdfast.tools.managed_output import ManagedOutput

            output = ManagedOutput(directories.data() / "tool-output", self.clock, trouble=_warn)
            engine = Engine(
                store=self.store,
                clock=self.clock,
                mint=self.mint,
                host=self.host,
                feed=self.feed,
                provider=self._provider_of,
                workspace=self._surroundings,
                tools=lambda session: self._tools_at.get(session.directory) or self.tools,
                keep=output.keep,
                presence=self._presence or Nobody(),
                on_ask=self._on_ask,
                plugins=self._plugins_of,
                contexts=self._contexts_of,
                http=self._http_now,
                cache=directories.cache(),
                warn=_warn,
            )

            async def sweep() -> None:
                await output.sweep()
                await expired_runs.prune(self.store, self.clock)

            self._coordinator = Coordinator(engine, sweep=sweep)
            self._prompting = Prompting(self._access, engine, self._coordinator)
        return self._prompting

    def _provider_of(self, workspace: "Workspace") -> "Provider":
        if self._provider is not None:
            return self._provider
        from holdfast.provider.wire.wired import WiredProvider, Wires

        self._wires = self._wires or Wires()
        return WiredProvider(self._wires, self.clock, workspace.providers.endpoint)

    async def _surroundings(self, session: Session) -> "Workspace":
        if self._around is not None:
            return self._around(session)
        # A prompt and its turns share one reading of the files; what a person edits counts a second later.
        now_ms = self.clock.boot_ms()
        known = self._known_around.get(session.directory)
        if known is not None and now_ms - known[0] < AROUND_MS:
            return known[1]
        found = await self._read_surroundings(session)
        if len(self._known_around) >= AROUND_MAX:
            self._known_around.clear()
        self._known_around[session.directory] = (now_ms, found)
        return found

    async def _read_surroundings(self, session: Session) -> "Workspace":
        import anyio.to_thread

        from holdfast.errors import InvalidInput
        from holdfast.location.project import Location
        from holdfast.provider.accounts import credentials
        from holdfast.sessions.creating import locate_
        from holdfast.workspace import host_settings
        from holdfast.workspace.workspace import surroundings

        is_here = True
        try:
            location = await locate_(self._access, session.directory)
        except InvalidInput:  # It came from elsewhere, or its folder was removed: it can still be read.
            is_here = False
            location = Location(session.directory, session.directory, session.project_id)
        decisions = await self.trust.decisions()
        held = host_settings.hosts_of(credentials.load())
        remote = await host_settings.settings_of(held) if held else []
        return await anyio.to_thread.run_sync(
            lambda: surroundings(location, trusted=decisions.trusted, remote=remote, is_here=is_here)
        )

    async def close(self) -> None:
        """Close every room, the highest first. Whoever is cancelled meanwhile leaves nothing open."""
        with anyio.CancelScope(shield=True):
            try:
                if self._coordinator is not None:
                    await self._coordinator.close()
                if self._wires is not None:
                    await self._wires.aclose()
                if self._http is not None:
                    await self._http.aclose()
            finally:
                await self.feed.close()
                await self.store.close()


def _start_backup(path: Path) -> None:
    """Let a process of its own make the daily backup, after everybody else: nobody waits for it.

    The shell ends at once, so that the process is nobody's child.
    """
    import subprocess
    import sys

    if not Path(sys.executable).name.startswith("python"):
        return  # A program that holds an interpreter would be started again itself.
    command = ["nice", "-n", "19", sys.executable, "-P", "-m", "holdfast.cli.daily_backup", str(path)]
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


_warned: dict[str, None] = {}


def _warn(line: str) -> None:
    """Tell whoever operates this process, once; nobody who uses it needs to know."""
    import logging

    if line not in _warned:
        _warned[line] = None
        if len(_warned) > WARNED_MAX:
            del _warned[next(iter(_warned))]
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
) -> AsyncIterator[Holdfast]:
    """`async with holdfast.open() as hf:` — the store is a URL; without one, the person's own.

    `provider` answers in the place of the real ones (a script, in tests); `presence` knows whether a person
    would see a question; `on_ask` answers such questions itself; `around` gives a session's settings in the
    place of the files.
    """
    host = host or ThisHost()
    # Without a given clock each store uses its own: PostgreSQL that of the database.
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
    )
    try:
        yield holdfast
    finally:
        await holdfast.close()

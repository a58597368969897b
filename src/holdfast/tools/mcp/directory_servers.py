"""The servers of one directory, and the registry with their tools.

What must stay true: a tool whose definition is as it was keeps its registration, so that a call under way is
not refused as stale; a server takes over no name that another tool has.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from holdfast.config.builtin_agents import READ_ONLY
from holdfast.errors import HoldfastError
from holdfast.schema.wire import JsonMap
from holdfast.text import printable
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import ToolDenied, ToolOutput
from holdfast.tools.mcp import definitions_seen, listed_tool, names
from holdfast.tools.mcp.keeper import Change, Keeper
from holdfast.tools.mcp.listed_tool import ListedTool, Offer, OfferedTool
from holdfast.tools.mcp.resources import resource_tools
from holdfast.tools.mcp.server import Server
from holdfast.tools.registry import Registration, Registry

if TYPE_CHECKING:
    from holdfast.tools.mcp.wire.connect import World

_NAMED_MAX: Final = 10

Changed = Callable[[Keeper, Change], None]
"""Called when the tools of a server or its state changed."""


class DirectoryServers:
    """Connected as long as they are in the settings. `warn` gets a line for the operator."""

    def __init__(self, below: Registry, changed: Changed, warn: Callable[[str], None]) -> None:
        self.below = below
        self.registry = Registry(below, absent=self._absent)
        self.keepers: dict[str, Keeper] = {}
        self._world: Callable[[], World] | None = None
        self._changed = changed
        self._warn = warn
        self._offers: dict[str, tuple[object, Offer]] = {}
        self._registered: dict[str, tuple[object, Registration]] = {}
        self._lock = anyio.Lock()
        self._seen: dict[str, tuple[ListedTool, ...]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._resource_tools = resource_tools(lambda: self.keepers)

    def update(self, servers: Mapping[str, Server], world: "Callable[[], World]") -> None:
        """Connect to those that are new, let those go that are gone, and reconnect where an entry changed."""
        self._world = world
        over = [keeper for name, keeper in self.keepers.items() if servers.get(name) != keeper.server]
        for keeper in over:
            del self.keepers[keeper.server.name]
        for keeper in self.keepers.values():
            keeper.restore()
        for name, server in servers.items():
            if name not in self.keepers:
                self.keepers[name] = self._started(server)
        for keeper in over:  # A program that does not want to end holds nobody up.
            task = asyncio.create_task(keeper.close(), name="holdfast-mcp-close")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _started(self, server: Server) -> Keeper:
        def world() -> "World":
            assert self._world is not None, "set before a server is started"
            return self._world()

        def changed(what: Change) -> None:
            self._changed(keeper, what)

        keeper = Keeper(server, world, changed)
        keeper.start()
        return keeper

    async def wait(self) -> None:
        """Wait for the first attempt of each server, all at once, and register what they offer."""
        for keeper in list(self.keepers.values()):
            await keeper.wait()
        await self.refresh()

    async def refresh(self) -> None:
        """Register the tools as they are now."""
        async with self._lock:
            taken = self.below.names() | {each.name for each in self._resource_tools}
            wanted: dict[str, tuple[object, Tool]] = {}
            for name, keeper in sorted(self.keepers.items()):
                offer = await self._offer(keeper, frozenset(taken | set(wanted)))
                for each in offer.tools:
                    wanted[each.name] = ((keeper.server, each), _tool(keeper, each))
                await self._compare(name, keeper)
            if any(keeper.has_resources for keeper in self.keepers.values()):
                for tool in self._resource_tools:
                    wanted[tool.name] = (tool.name, tool)
            self._register(wanted)

    def _register(self, wanted: Mapping[str, tuple[object, Tool]]) -> None:
        for name, (basis, registration) in list(self._registered.items()):
            if name not in wanted or wanted[name][0] != basis:
                registration.close()
                del self._registered[name]
        for name, (basis, tool) in wanted.items():
            if name not in self._registered:
                self._registered[name] = (basis, self.registry.register(tool))

    async def _offer(self, keeper: Keeper, taken: frozenset[str]) -> Offer:
        name = keeper.server.name
        others = frozenset(self.keepers) - {name}
        basis = (keeper.server, keeper.listed, taken, others)
        known = self._offers.get(name)
        if known is None or known[0] != basis:
            made = await listed_tool.offer(*basis)
            for problem in made.problems if known is None or known[1].problems != made.problems else ():
                self._warn(f"MCP server {name}: {problem}")
            known = self._offers[name] = (basis, made)
        return known[1]

    async def _compare(self, name: str, keeper: Keeper) -> None:
        """Report definitions that are not those that were first seen, once."""
        if not keeper.listed or self._seen.get(name) == keeper.listed:
            return
        self._seen[name] = keeper.listed
        try:
            others = await anyio.to_thread.run_sync(definitions_seen.changed, keeper.server, keeper.listed)
        except HoldfastError as error:
            self._warn(f"the definitions of MCP server {name} cannot be compared: {error}")
            return
        if others:
            more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
            shown = ", ".join(printable(each[:60]) for each in others[:_NAMED_MAX])
            self._warn(
                f"MCP server {name} has other definitions than before: {shown}{more}; "
                f"`holdfast mcp debug {name}` shows them, and `--accept` takes them as known"
            )

    def offered(self, server: str) -> tuple[OfferedTool, ...]:
        """The tools of one server, as the model is shown them."""
        known = self._offers.get(server)
        return () if known is None else known[1].tools

    def _absent(self, name: str) -> str | None:
        """Why a tool that the model was shown earlier is not there: its server has never connected here."""
        for keeper in self.keepers.values():
            if keeper.status.status != "connected" and name.startswith(names.plain(keeper.server.name, "")):
                return keeper.away(name)
        return None

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way."""
        return any(keeper.calls for keeper in self.keepers.values())

    async def close(self) -> None:
        """End every connection."""
        keepers, self.keepers = list(self.keepers.values()), {}
        async with anyio.create_task_group() as group:
            for keeper in keepers:
                group.start_soon(keeper.close)
            if self._ending:
                await asyncio.wait(self._ending)


def _tool(keeper: Keeper, offered: OfferedTool) -> Tool:
    """A tool of a server as every other."""

    async def run(context: ToolContext, input: JsonMap) -> ToolOutput:
        if context.agent in READ_ONLY and not offered.read_only:
            raise ToolDenied(
                f"The agent {context.agent} only reads, and {offered.name} is not declared as reading only."
            )
        facts = {"server": keeper.server.name, "tool": offered.tool}
        await context.ask(offered.name, ["*"], always=["*"], metadata=facts)
        if offered.repeatable:
            return await keeper.call(offered, input, context)
        keeper.link(offered.name)  # Before anything is called an effect.
        with context.effect(f"something that {offered.name} reaches"):
            return await keeper.call(offered, input, context)

    return Tool(
        name=offered.name,
        description=offered.description,
        schema=offered.schema,
        run=run,
        permission=offered.name,
        repeatable=offered.repeatable,
        writes=not offered.read_only,
        asks_midway=True,
    )

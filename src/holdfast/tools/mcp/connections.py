"""The MCP servers of a process, directory by directory. They end with it."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.tools.mcp.directory_servers import DirectoryServers
from holdfast.tools.mcp.keeper import Change, Keeper
from holdfast.tools.mcp.server import Server
from holdfast.tools.registry import Registry

if TYPE_CHECKING:
    from holdfast.tools.mcp.wire.connect import World

DIRECTORIES_MAX: Final = 8
"""Of more directories, the servers of the one that was used least recently are let go."""
CLOSE_S: Final = 4.0

Publish = Callable[[str, JsonMap], None]


class Connections:
    """`publish` announces an event; `warn` gets a line for the operator."""

    def __init__(self, publish: Publish, warn: Callable[[str], None]) -> None:
        self._publish = publish
        self._warn = warn
        self._at: OrderedDict[str, DirectoryServers] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def at(self, directory: str) -> DirectoryServers | None:
        """The servers of a directory, if any were connected."""
        return self._at.get(directory)

    async def connect(
        self, directory: str, servers: Mapping[str, Server], below: Registry, world: "Callable[[], World]"
    ) -> None:
        """Connect the servers of a directory as the settings have them now, and wait for those that are new.

        All at once, and each no longer than its own bound.
        """
        here = self._at.get(directory)
        if self._closed or (here is None and not servers):
            return
        if here is None or here.below is not below:
            here = self._at[directory] = self._made(directory, below, here)
        self._at.move_to_end(directory)
        here.update(servers, world)
        await here.wait()
        if not servers and self._at.get(directory) is here:
            del self._at[directory]
            self._start(here.close())
        self._let_go()

    def _made(self, directory: str, below: Registry, before: DirectoryServers | None) -> DirectoryServers:
        def changed(keeper: Keeper, what: Change) -> None:
            server = keeper.server.name
            if what == "tools":
                self._publish("mcp.tools.changed", {"directory": directory, "server": server})
                self._start(made.refresh())
            else:
                state: JsonMap = msgspec.to_builtins(keeper.status)
                self._publish("mcp.status", {"directory": directory, "server": server, **state})

        made = DirectoryServers(below, changed, self._warn)
        if before is not None:
            self._start(before.close())
        return made

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="holdfast-mcp")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _let_go(self) -> None:
        for directory, each in list(self._at.items()):
            if len(self._at) <= DIRECTORIES_MAX:
                return
            if not each.is_busy:
                del self._at[directory]
                self._start(each.close())

    async def keep(self) -> None:
        """Wait until this is cancelled, then end every connection: with the tasks of the process."""
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await self.close()

    async def close(self) -> None:
        """End every connection, within a bound: what is left then is ended by the guard."""
        self._closed = True
        with anyio.move_on_after(CLOSE_S):
            async with anyio.create_task_group() as group:
                while self._at:
                    group.start_soon(self._at.popitem()[1].close)
                if self._tasks:
                    await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.cancel()

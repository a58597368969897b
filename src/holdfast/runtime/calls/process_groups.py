"""The process groups of tools: started for one call and ended with it, also if a process dies in between.

What must stay true: the guard knows a group before its call continues, and the running part names it, with
the start time of its leader, so that recovery can end the groups of a dead owner. A program that changes
nothing and soon ends by itself is known to the guard alone.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio.abc import Process

from holdfast import processes
from holdfast.location.ending_processes import EndingProcesses
from holdfast.location.guard import Guard
from holdfast.runtime.engine import process_group
from holdfast.runtime.engine.call_box import CallBox
from holdfast.runtime.engine.process_group import Group
from holdfast.schema import typed
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolRunning
from holdfast.schema.wire import JsonMap
from holdfast.store.host import Host

GROUPS: Final = "groups"
"""In the metadata of a running part: the process groups of the call."""


class Groups:
    """The groups of one call. `note` stores them in its part."""

    def __init__(
        self,
        guard: Guard,
        ending: EndingProcesses,
        host: Host,
        note: Callable[[JsonMap], Awaitable[None]],
    ) -> None:
        self._guard = guard
        self._ending = ending
        self._host = host
        self._note = note
        self._running: list[Group] = []

    @asynccontextmanager
    async def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        strays: bool = False,
        noted: bool = True,
        box: CallBox | None = None,
    ) -> AsyncIterator[Process]:
        """Run a program in a group of its own until the block ends. In a box the launcher leads the group."""
        mark = secrets.token_hex(8) if strays else ""
        if box is None:
            with process_group.expected(self._guard, mark):
                process = await process_group.start(command, cwd=cwd, env=env, mark=mark)
            async with self._ended(process, mark, noted=noted):
                yield process
            return
        with box.launched(command, cwd, process_group.marked(env, mark), ahead=True) as launching:
            with process_group.expected(self._guard, mark):
                process = await process_group.start_boxed(launching, cwd=cwd)
            async with self._ended(process, mark, noted=noted):
                launching.go()
                yield process
        await box.make_ready()

    @asynccontextmanager
    async def _ended(self, process: Process, mark: str, *, noted: bool) -> AsyncIterator[None]:
        """Note the group of a process; end it with the block."""
        group = process_group.named(process.pid, self._host, mark)
        try:
            self._guard.watch(group.pgid, group.began, mark)
            if noted:
                self._running.append(group)
                await self._note({GROUPS: msgspec.to_builtins(self._running)})
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_now(process, group)

    async def _end_now(self, process: Process, group: Group) -> None:
        """End the group: the guard, which outlives the turn, kills what still runs."""
        self._ending.add(process)
        if group in self._running:
            self._running.remove(group)
        try:
            if group.mark or processes.is_group(group.pgid):
                self._guard.end(group.pgid)
            else:
                self._guard.forget(group.pgid)
        except OSError:  # No guard can be started: kill it from here.
            await process_group.end(group)
        if process.stdout is not None:
            with contextlib.suppress(OSError):
                await process.stdout.aclose()


async def end_left(parts: Iterable[ToolPart], host: Host) -> None:
    """End the groups that a dead owner's calls left on this machine, and wait until they are gone."""
    left = [group for part in parts for group in _groups(part) if group.is_here(host)]
    async with anyio.create_task_group() as ending:
        for group in left:
            ending.start_soon(process_group.end, group)


def _groups(part: ToolPart) -> list[Group]:
    state = part.state
    noted = (state.metadata or {}).get(GROUPS) if isinstance(state, ToolRunning) else None
    try:
        return typed.convert(noted or [], list[Group])
    except msgspec.ValidationError:
        return []  # An imported part may hold anything under this name.

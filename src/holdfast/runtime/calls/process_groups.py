"""The process groups of tools: started for one call and ended with it, also if a process dies in between.

What must stay true: the guard knows a group before its call continues, and the running part names it, with
the start time of its leader, so that recovery can end the groups of a dead owner.
"""

import contextlib
import secrets
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio.abc import Process

from holdfast import processes
from holdfast.location.guard import Guard
from holdfast.schema import typed
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolRunning
from holdfast.schema.wire import JsonMap
from holdfast.store.host import Host
from holdfast.toolkit.output import ToolFailure

GROUPS: Final = "groups"
"""In the metadata of a running part: the process groups of the call."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One process group, identified so that a reused id is not mistaken for it."""

    pgid: int
    began: str
    host: str
    boot: str
    namespace: str
    mark: str = ""
    """What the environment of its processes holds, so that one that leaves the group is known."""


class Groups:
    """The groups of one call. `note` stores them in its part."""

    def __init__(self, guard: Guard, host: Host, note: Callable[[JsonMap], Awaitable[None]]) -> None:
        self._guard = guard
        self._host = host
        self._note = note
        self._running: list[Group] = []

    @asynccontextmanager
    async def spawn(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], strays: bool = False
    ) -> AsyncIterator[Process]:
        """Run a program in a group of its own until the block ends."""
        mark = secrets.token_hex(8) if strays else ""
        process = await start(command, cwd=cwd, env=env, mark=mark)
        group = named(process.pid, self._host, mark)
        self._running.append(group)
        try:
            self._guard.watch(group.pgid, group.began, mark)
            await self._note_all()
            yield process
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_now(process, group)

    async def _note_all(self) -> None:
        await self._note({GROUPS: msgspec.to_builtins(self._running)})

    async def _end_now(self, process: Process, group: Group) -> None:
        """End the group: the guard, which outlives the turn, kills what still runs."""
        self._running.remove(group)
        try:
            if group.mark or processes.is_group(group.pgid):
                self._guard.end(group.pgid)
            else:
                self._guard.forget(group.pgid)
        except OSError:  # No guard can be started: kill it from here.
            await _end(group)
        if process.stdout is not None:
            with contextlib.suppress(OSError):
                await process.stdout.aclose()


async def start(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    mark: str = "",
    stdin: int = subprocess.DEVNULL,
) -> Process:
    """Start a program in a group of its own: this is the one place where tools' programs are started."""
    try:
        return await anyio.open_process(
            list(command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**env, processes.MARK: mark} if mark else env,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL character in an argument
        why = error.strerror or error if isinstance(error, OSError) else error
        raise ToolFailure(f"{command[0]} could not be started: {why}.") from error


def named(pgid: int, host: Host, mark: str = "") -> Group:
    """The group of a process that was just started on this host."""
    began = processes.started(pgid)
    return Group(
        pgid=pgid, began=began, host=host.id, boot=host.boot, namespace=host.pid_namespace, mark=mark
    )


async def end_left(parts: Iterable[ToolPart], host: Host) -> None:
    """End the groups that a dead owner's calls left on this machine, and wait until they are gone."""
    left = [group for part in parts for group in _groups(part) if _is_here(group, host)]
    async with anyio.create_task_group() as ending:
        for group in left:
            ending.start_soon(_end, group)


async def _end(group: Group) -> None:
    await anyio.to_thread.run_sync(lambda: processes.end_group(group.pgid, group.began, mark=group.mark))


def _groups(part: ToolPart) -> list[Group]:
    state = part.state
    noted = (state.metadata or {}).get(GROUPS) if isinstance(state, ToolRunning) else None
    try:
        return typed.convert(noted or [], list[Group])
    except msgspec.ValidationError:
        return []  # An imported part may hold anything under this name.


def _is_here(group: Group, host: Host) -> bool:
    return (group.host, group.boot, group.namespace) == (host.id, host.boot, host.pid_namespace)

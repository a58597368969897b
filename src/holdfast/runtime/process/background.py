"""The tasks of this process that outlive a call: drains, the request watcher, the lease.

They run in a task of their own, started with the first of them, so that an error of the program that opened
the application is not wrapped in a group with theirs. What must stay true: an error of one task ends no
other. A task that is to run always is warned about and started again after a pause.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.abc import TaskGroup

from holdfast.errors import Refused
from holdfast.log import event
from holdfast.toolkit.cancellation import ends_the_program
from holdfast.tools.plain import described

PAUSE_S, PAUSE_MAX_S = 0.5, 10.0


class Background:
    """A task group that runs until it is closed."""

    def __init__(self, *always: Callable[[], Coroutine[Any, Any, None]], warn: Callable[[str], None]) -> None:
        self._always = always
        self._warn = warn
        self._task: asyncio.Task[None] | None = None
        self._group: TaskGroup | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()

    async def group(self) -> TaskGroup:
        """The group, started by the first call."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="holdfast-background")
        await self._ready.wait()
        if self._group is None or self._task.done() or self._stop.is_set():
            raise Refused("the runtime was closed, or has failed; open it again")
        return self._group

    def start(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Run something in the group, from its start until it is closed; at other times nothing happens.

        A task that joins while the group is cancelled might not be cancelled with it.
        """
        if self._group is not None and not self._stop.is_set():
            self._group.start_soon(self._once, work, *arguments)

    @property
    def begun(self) -> bool:
        """Whether the group was started."""
        return self._task is not None

    async def _run(self) -> None:
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                for each in self._always:
                    group.start_soon(self._again, each)
                self._ready.set()
                await self._stop.wait()
                group.cancel_scope.cancel()
        finally:
            self._group = None
            self._ready.set()  # Waiters must not wait for a group that has ended.

    async def _once(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        try:
            await work(*arguments)
        except BaseException as error:
            if ends_the_program(error):
                raise
            self._warn_of(work, error)

    async def _again(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        pause_s = PAUSE_S
        while True:
            begun_s = anyio.current_time()
            try:
                await work()
            except BaseException as error:
                if ends_the_program(error):
                    raise
                self._warn_of(work, error)
            pause_s = PAUSE_S if anyio.current_time() - begun_s > PAUSE_MAX_S else pause_s
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _warn_of(self, work: Callable[..., object], error: BaseException) -> None:
        name = getattr(work, "__qualname__", "a task").strip("_")
        event.error("process", "task.failed", task=name, error=event.where(error))
        self._warn(f"{name} failed, and the rest goes on: {described(error)}")

    async def close(self) -> None:
        """End everything that runs here."""
        if self._task is None:
            return
        self._stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(self._task)

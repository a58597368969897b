"""The tasks that outlive a call: drains, the listener, the lease. Begun with the first of them.

They live in a task of their own, so that an error of whoever opened the application reaches him as it is, and
is not wrapped together with theirs.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.abc import TaskGroup

from holdfast.errors import Refused


class Background:
    """A task group that runs beside its owner until it is closed."""

    def __init__(self, *always: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._always = always
        self._task: asyncio.Task[None] | None = None
        self._group: TaskGroup | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()

    async def group(self) -> TaskGroup:
        """The group, begun when it is first asked for."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="holdfast-background")
        await self._ready.wait()
        if self._group is None or self._task.done():
            raise Refused("the runtime was closed, or has broken; open it anew")
        return self._group

    def start(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Do something beside the rest, if there is anything yet to do it in."""
        if self._group is not None:
            self._group.start_soon(work, *arguments)

    @property
    def begun(self) -> bool:
        """Whether anything runs here."""
        return self._task is not None

    async def _run(self) -> None:
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                for each in self._always:
                    group.start_soon(each)
                self._ready.set()
                await self._stop.wait()
                group.cancel_scope.cancel()
        finally:
            self._group = None
            self._ready.set()  # Nobody waits for what is dead.

    async def close(self) -> None:
        """End everything that runs here."""
        if self._task is None:
            return
        self._stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(self._task)

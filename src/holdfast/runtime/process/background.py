"""The tasks that outlive a call: drains, the listener, the lease. Begun with the first of them.

They live in a task of their own, so that an error of whoever opened the application reaches him as it is, and
is not wrapped together with theirs. What must stay true: no error of one of them ends the others. One that
always runs is warned of and begins again after a pause.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.abc import TaskGroup

from holdfast.errors import Refused
from holdfast.tool.cancellation import ends_the_program
from holdfast.tools.plain import described

PAUSE_S, PAUSE_MAX_S = 0.5, 10.0


class Background:
    """A task group that runs beside its owner until it is closed."""

    def __init__(self, *always: Callable[[], Coroutine[Any, Any, None]], warn: Callable[[str], None]) -> None:
        self._always = always
        self._warn = warn
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
            self._group.start_soon(self._once, work, *arguments)

    @property
    def begun(self) -> bool:
        """Whether anything runs here."""
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
            self._ready.set()  # Nobody waits for what is dead.

    async def _once(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        try:
            await work(*arguments)
        except BaseException as error:
            if ends_the_program(error):
                raise
            self._tell(work, error)

    async def _again(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        pause_s = PAUSE_S
        while True:
            begun_s = anyio.current_time()
            try:
                await work()
            except BaseException as error:
                if ends_the_program(error):
                    raise
                self._tell(work, error)
            pause_s = PAUSE_S if anyio.current_time() - begun_s > PAUSE_MAX_S else pause_s
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _tell(self, work: Callable[..., object], error: BaseException) -> None:
        name = getattr(work, "__qualname__", "a task").strip("_")
        self._warn(f"{name} failed, and the rest goes on: {described(error)}")

    async def close(self) -> None:
        """End everything that runs here."""
        if self._task is None:
            return
        self._stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(self._task)

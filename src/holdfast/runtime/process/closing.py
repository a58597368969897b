"""What a process closes once its drains have ended: background tasks, the guard, programs, boxes.

What must stay true: each is closed whatever became of the one before it, and none is waited for without a
bound, since a program that hangs in the kernel does not end when it is killed.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

import anyio
import anyio.to_thread

from holdfast.location.guard import Guard
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.process.background import Background

LAST_S: Final = 0.5
"""What is left at least for hearing of ends that a late guard has brought about."""


async def close_behind(engine: Engine, background: Background, until: float) -> None:
    """End the background tasks, then the guard, which ends the programs of tools that are left."""
    async with AsyncExitStack() as closing:  # The last one first.
        closing.push_async_callback(_bounded, engine.boxes.close, until, LAST_S)
        closing.push_async_callback(_bounded, engine.ending.close, until, LAST_S)
        closing.push_async_callback(_close_guard, engine.guard, until)
        closing.push_async_callback(_bounded, background.close, until, LAST_S)
        closing.push_async_callback(_bounded, lambda: engine.background.close(engine.ending), until)


async def _bounded(close: Callable[[], Awaitable[None]], until: float, least_s: float = 0.0) -> None:
    with anyio.CancelScope(deadline=max(until, anyio.current_time() + least_s), shield=True):
        await close()


async def _close_guard(guard: Guard, until: float) -> None:
    with anyio.CancelScope(shield=True):
        wait_s = max(0.0, until - anyio.current_time())
        await anyio.to_thread.run_sync(lambda: guard.close(wait_s=wait_s))

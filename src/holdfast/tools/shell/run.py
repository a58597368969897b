"""Runs a command to its end, or to the end of its time, and shows what it prints meanwhile."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio
import msgspec
from anyio.abc import Process

from holdfast.toolkit.processes import CommandOutput

SHOW_S: Final = 0.1
"""How often what it prints is shown at most."""
REST_S: Final = 1.0
"""How long output may still come after the command has ended: another process may hold it open for ever."""
_PIECE_BYTES: Final = 1 << 16

Show = Callable[[], Awaitable[None]]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended. `exit` is None when it was ended; `left`: a process that it started lives on."""

    exit: int | None
    late: bool = False
    left: bool = False


async def run(
    spawned: AbstractAsyncContextManager[Process], output: CommandOutput, show: Show, *, timeout_ms: int
) -> Ended:
    """Run it. Whatever ends the block ends its process group."""
    left = False
    async with spawned as process:
        with anyio.move_on_after(timeout_ms / 1_000) as bound:
            left = await follow(process, output, show)
        status = process.returncode
    late = bound.cancelled_caught and status is None
    return Ended(exit=None if late else status, late=late, left=left)


async def follow(process: Process, output: CommandOutput, show: Show, *, every_s: float = SHOW_S) -> bool:
    """Take its output until it has ended; whether another process still holds the output open.

    `show` is called when something came, and not more often than `every_s`.
    """
    news, read = anyio.Event(), anyio.Event()
    waiting = [news]

    async def take() -> None:
        assert process.stdout is not None
        try:
            while True:
                await output.take(await process.stdout.receive(_PIECE_BYTES))
                waiting[0].set()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            read.set()

    async def tell() -> None:
        while True:
            await waiting[0].wait()
            waiting[0] = anyio.Event()
            await show()
            await anyio.sleep(every_s)

    async with anyio.create_task_group() as group:
        group.start_soon(take)
        group.start_soon(tell)
        await process.wait()
        with anyio.move_on_after(REST_S):
            await read.wait()
        group.cancel_scope.cancel()
    return not read.is_set()

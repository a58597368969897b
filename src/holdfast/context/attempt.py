"""One attempt to look at the world, within a limit.

What must stay true: whoever waits is held for the limit and a short grace at most, even by work that ignores
its cancellation (a thread stuck in a dead file system); an ordinary error becomes a reason of one line;
cancellation from outside passes through.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import msgspec

from holdfast.errors import HoldfastError

T = TypeVar("T")

GRACE_S = 1.0
"""How long work may tidy up after it was cancelled, before nobody waits for it any more."""

_REASON_MAX = 300


class Failed(msgspec.Struct, frozen=True):
    """Why there is no answer, in one line."""

    reason: str


async def attempt(work: Callable[[], Awaitable[T]], *, limit_s: float) -> T | Failed:
    """What the work answers, or why it did not."""
    # A task of its own, not a child of a task group: a group could not be left before its child ends.
    task = asyncio.get_running_loop().create_task(_done(work))
    ended = False
    try:
        await asyncio.wait({task}, timeout=limit_s)
        ended = task.done()
    finally:
        if not ended:
            await _let_go(task)
    if not ended:
        return Failed(f"it took longer than {limit_s:g} s")
    return Failed("it was cancelled from within") if task.cancelled() else task.result()


async def _done(work: Callable[[], Awaitable[T]]) -> T | Failed:
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - a source may raise anything; that is its being unavailable
        return Failed(_reason(error))


async def _let_go(task: asyncio.Task[T | Failed]) -> None:
    task.cancel()
    with anyio.move_on_after(GRACE_S, shield=True):
        await asyncio.wait({task})


def _reason(error: Exception) -> str:
    # A task group wraps even a single error.
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    # Our own errors are sentences; others need their name.
    said = str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
    line = "".join(c if c.isprintable() else " " for c in said)
    return " ".join(line.split())[:_REASON_MAX].removesuffix(":")

"""One attempt to look at the world, within a limit.

What must stay true: the caller is held for the limit and a short grace at most, even by work that ignores
its cancellation (a thread stuck in a dead file system); an ordinary error becomes a reason of one line;
cancellation from outside passes through.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
import msgspec

from holdfast.errors import HoldfastError
from holdfast.text import printable

T = TypeVar("T")

GRACE_S = 1.0
"""How long work may tidy up after it was cancelled, before it is abandoned."""

_REASON_MAX = 300


class FailedAttempt(msgspec.Struct, frozen=True):
    """Why there is no answer, in one line."""

    reason: str


async def attempt(work: Callable[[], Awaitable[T]], *, limit_s: float) -> T | FailedAttempt:
    """What the work answers, or why it did not."""
    return (await attempts([work], limit_s=limit_s))[0]


async def attempts(works: Sequence[Callable[[], Awaitable[T]]], *, limit_s: float) -> list[T | FailedAttempt]:
    """What each of several works, begun at the same time, answers, or why it did not."""
    # Tasks of their own, not children of a task group: a group could not be left before its children end.
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(done(work)) for work in works]
    late: set[asyncio.Task[T | FailedAttempt]] = set(tasks)
    try:
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=limit_s)
    finally:
        if late:
            await _let_go(late)
    return [
        FailedAttempt(f"it took longer than {limit_s:g} s") if task in late else _result_of(task)
        for task in tasks
    ]


def _result_of(task: "asyncio.Task[T | FailedAttempt]") -> T | FailedAttempt:
    return FailedAttempt("it was cancelled from within") if task.cancelled() else task.result()


async def done(work: Callable[[], Awaitable[T]]) -> T | FailedAttempt:
    """What the work answers, or why it failed; it is trusted not to wait."""
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - a source may raise anything; that is its being unavailable
        return FailedAttempt(_reason(error))


async def _let_go(tasks: "set[asyncio.Task[T | FailedAttempt]]") -> None:
    for task in tasks:
        task.cancel()
    with anyio.move_on_after(GRACE_S, shield=True):
        await asyncio.wait(tasks)


def _reason(error: Exception) -> str:
    # A task group wraps even a single error.
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    # Our own errors are sentences; others need their name.
    message = str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
    return " ".join(printable(message).split())[:_REASON_MAX].removesuffix(":")

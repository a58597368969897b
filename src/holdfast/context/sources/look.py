"""Looks at files for a source, in a thread.

What must stay true: the event loop never waits for a disk; a cancelled caller is released at once, and
threads that hang in a dead filesystem are few, whatever happens. Warnings are given from the loop's thread.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from holdfast.context.source import UNAVAILABLE, Missing
from holdfast.errors import HoldfastError

T = TypeVar("T")

THREADS_MAX: Final = 8

Warn = Callable[[str], None]
"""Takes warnings of faults that do no harm, a line each; again at every look while the fault lasts."""

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("holdfast-context-sources")


async def look(what: str, work: Callable[[list[str]], T], warn: Warn) -> T | Missing:
    """What the work found, or UNAVAILABLE when it could not look; it is given a list for its problems."""
    problems: list[str] = []
    try:
        found = await in_thread(lambda: work(problems))
    except (HoldfastError, OSError, ValueError) as error:
        warn(f"{what} cannot be looked at now, and stay as they were: {_reason(error)}")
        return UNAVAILABLE
    for problem in dict.fromkeys(problems):
        warn(problem)
    return found


async def in_thread(work: Callable[[], T]) -> T:
    """Do something that waits for the disk."""
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=_threads())


def _threads() -> anyio.CapacityLimiter:
    """Our own few, so that a dead disk does not use up the process's."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS_MAX)
        _limiter.set(limiter)
        return limiter


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split())

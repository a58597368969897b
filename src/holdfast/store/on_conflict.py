"""A read-modify-write that begins again when another writer came in between."""

import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

from holdfast.errors import Conflict, InvariantBroken

T = TypeVar("T")

TRIES: Final = 30
PAUSE_MAX_S: Final = 0.05


async def on_conflict(work: Callable[[], Awaitable[T]], *, tries: int = TRIES) -> T:
    """Do the work; begin again, a bounded number of times, when it meets another writer (`Conflict`)."""
    for attempt in range(tries):
        try:
            return await work()
        except Conflict:
            if attempt == tries - 1:
                raise
            # Random pauses that grow let many writers past each other.
            await anyio.sleep(random.uniform(0, min(PAUSE_MAX_S, 0.001 * 2**attempt)))  # noqa: S311
    raise InvariantBroken("a loop that returns or raises came to its end")

"""One caller's wait for commits: what `Store.watch` answers. The engine that made it wakes it."""

import asyncio
import contextlib
from collections.abc import Callable


class StoreWatch:
    """See the port. `leave` is called when the caller waits no more; `limit_s` bounds each wait."""

    def __init__(self, leave: "Callable[[StoreWatch], None]", limit_s: Callable[[], float | None]) -> None:
        self._leave = leave
        self._limit_s = limit_s
        self.event = asyncio.Event()

    async def wait(self) -> None:
        """Return when something may have changed, at the latest after a second."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limit_s()):
                await self.event.wait()
        self.event.clear()

    def close(self) -> None:
        """Wait no more."""
        self._leave(self)

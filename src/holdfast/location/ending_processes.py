"""Programs that were let go and may not have ended yet.

Whoever ends a program by the guard goes on at once. An event loop that closes before it has heard of the end
would leave the program unburied and the pipe of its output open, so closing waits here, last.
"""

import anyio
from anyio.abc import Process


class EndingProcesses:
    """Those of one event loop. Who has ended is forgotten with the next one."""

    def __init__(self) -> None:
        self._running: list[Process] = []

    def add(self, process: Process) -> None:
        """It is being ended, or is about to end by itself."""
        self._running = [each for each in (*self._running, process) if each.returncode is None]

    async def close(self) -> None:
        """Wait until each has ended; the caller sets a bound."""
        running, self._running = self._running, []
        async with anyio.create_task_group() as waiting:
            for each in running:
                waiting.start_soon(each.wait)

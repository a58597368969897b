"""Ctrl-C and SIGTERM while a session works: the first asks it to stop, the second ends the process at once.

What must stay true: from the first word to the session until the process ends, a signal never becomes an
exception in the middle of something.
"""

import asyncio
import os
import signal
from contextlib import suppress

from holdfast.cli.main import INTERRUPTED
from holdfast.cli.output import note


class Interrupts:
    """Listens from now on, also when the event loop is being closed and after it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.session: str | None = None
        """The session that works now."""
        self._loop = asyncio.get_running_loop()
        self._count = 0
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: self._on_signal())

    def _on_signal(self) -> None:
        """Called between any two steps of whatever runs, which may be printing: so no buffers are touched."""
        self._count += 1
        if self._count > 2:
            return  # The second is being seen to, and says its line once.
        if self._count > 1:  # What is stored is stored; the user need not wait for the rest.
            if self.session is not None:
                line = f"Ended at once. `holdfast session resume {self.session}` goes on.\n"
                with suppress(OSError):
                    os.write(2, line.encode())
            os._exit(INTERRUPTED)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ask)

    def _ask(self) -> None:
        self.asked.set()
        if self.session is not None:
            note("Interrupting; once more ends at once.")

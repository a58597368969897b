"""Ctrl-C and SIGTERM while a session works: the first asks it to stop, the second ends the process at once.

What must stay true: from the first word to the session until the event loop is closed, a signal never
becomes an exception in the middle of something.
"""

import asyncio
import os
import signal

from holdfast.cli.main import INTERRUPTED
from holdfast.cli.output import note


class Interrupts:
    """Listens until the event loop is closed, which may wait for others when the work is over."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.session: str | None = None
        """The session that works now."""
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(each, self._hear)

    def _hear(self) -> None:
        if self.asked.is_set():  # What is stored is stored; nobody has to wait for the rest.
            if self.session is not None:
                note(f"Ended at once. `holdfast session resume {self.session}` goes on.")
            os._exit(INTERRUPTED)
        self.asked.set()
        if self.session is not None:
            note("Interrupting; once more ends at once.")

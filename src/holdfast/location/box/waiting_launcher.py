"""A launcher that was started ahead: a command then waits for its box, and not for an interpreter.

It is a child of this process in a session of its own, like one that is started with its command, and knows
nothing yet: its orders come by a socket. What must stay true: it ends by itself when this process ends, and
after a time without orders; of the user's variables it has those alone that an interpreter needs; no command
is given to one that may be ending.
"""

import contextlib
import os
import socket
import subprocess
import time
from typing import Final

import anyio
from anyio.abc import Process

from holdfast.location.box import interpreter
from holdfast.location.box.start import Errand, Start

WAIT_S: Final = 600
LAST_S: Final = 60
"""At the end of its time, in which it is given nothing more."""
_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH")
"""What an interpreter may need to start."""


class WaitingLauncher:
    """One of them, for one command."""

    def __init__(self, process: Process, orders: socket.socket, until: float) -> None:
        self.process = process
        self._orders = orders
        self._until = until

    @classmethod
    async def start(cls, wait_s: int = WAIT_S) -> "WaitingLauncher":
        """Start one that waits for so long; `OSError` where that cannot be."""
        until = time.monotonic() + wait_s - LAST_S
        ours, its = socket.socketpair()
        with its:
            try:
                process = await anyio.open_process(
                    [*interpreter.command(), "wait", str(its.fileno()), str(wait_s)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
                    start_new_session=True,
                    pass_fds=(its.fileno(),),
                )
            except BaseException:
                ours.close()
                raise
        return cls(process, ours, until)

    @property
    def is_usable(self) -> bool:
        """Whether it still waits, and will for a while."""
        return self.process.returncode is None and time.monotonic() < self._until

    def give(self, start: Start, errand: Errand) -> None:
        """Send it a command. One that has died meanwhile never reports that its box is ready."""
        with self._orders, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._orders, [b"!"], list(start.with_errand(errand)))

    def discard(self) -> None:
        """End it unused.

        It is killed before its orders end: one that ends by itself just then would be waited for by the call
        that kills it, and asyncio would not know its end ("Unknown child process").
        """
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self._orders.close()

    async def close(self) -> None:
        """End it unused, and wait until it is gone."""
        self.discard()
        await self.process.aclose()

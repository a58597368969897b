"""One terminal: what its program prints is taken as fast as it comes, and kept within a bound.

What must stay true: the program is never held up by a reader, and no reader by another; each reads from the
scroll-back at its own pace, and a slow one is told how much it missed. When the program has ended, what it
printed last is taken first, then the terminal is over: streams end, and the device is closed.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import Process
from msgspec.structs import replace

from holdfast.errors import InvalidInput, Refused
from holdfast.location.terminal.device import Device
from holdfast.location.terminal.scrollback import SCROLLBACK_BYTES_MAX, Scrollback
from holdfast.schema.terminal import Terminal, TerminalOutput

WRITE_S: Final = 10.0
"""For so long a program may leave its input unread before a writer is turned away."""
WRITE_BYTES_MAX: Final = 1024 * 1024
END_S: Final = 5.0
_READ_BYTES: Final = 64 * 1024
_READS_MAX: Final = 16
"""Reads in a row, before the other tasks of this process have their turn."""
_SIGNALLED: Final = 128


class OpenTerminal:
    """A terminal from the start of its program on. `ended` is called once, when it is over."""

    def __init__(
        self,
        info: Terminal,
        device: Device,
        process: Process,
        *,
        directory: str,
        scrollback_bytes_max: int = SCROLLBACK_BYTES_MAX,
        ended: Callable[["OpenTerminal"], None],
    ) -> None:
        self.info = info
        self.directory = directory
        self._device = device
        self._process = process
        self._scrollback = Scrollback(scrollback_bytes_max)
        self._ended = ended
        self._writing = anyio.Lock()
        self._more: anyio.Event | None = None
        self._over = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(device.master, self._take)
        self._task = asyncio.create_task(self._supervise(), name=f"holdfast-{info.id}")

    @property
    def running(self) -> bool:
        """Whether its program still runs."""
        return self.info.status == "running"

    def _take(self) -> bool:
        """Take what was printed, within a bound; whether there may be more."""
        taken = False
        for _ in range(_READS_MAX if self._device.open else 0):
            try:
                data = os.read(self._device.master, _READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:  # Hung up by the program: nothing comes any more.
                self._loop.remove_reader(self._device.master)
                break
            taken = True
            self._scrollback.append(data)
        if taken:
            self._wake()
        return taken

    def _wake(self) -> None:
        if self._more is not None:
            self._more.set()
            self._more = None

    async def _supervise(self) -> None:
        code = await self._process.wait()
        # What the program left running may print for ever: no more is taken than is kept.
        for _ in range(SCROLLBACK_BYTES_MAX // _READ_BYTES):
            if not self._take():
                break
            await anyio.lowlevel.checkpoint()
        self._finish(_SIGNALLED - code if code < 0 else code)

    def _finish(self, code: int) -> None:
        self._scrollback.complete = True
        self.info = replace(self.info, status="exited", exit_code=code)
        self._close_device()
        self._over.set()
        self._wake()
        self._ended(self)

    def _close_device(self) -> None:
        if self._device.open:
            self._loop.remove_reader(self._device.master)
            anyio.notify_closing(self._device.master)
            self._device.close()

    def read(self, cursor: int, bytes_max: int) -> TerminalOutput:
        """The next piece from the cursor on."""
        if bytes_max < 1:
            raise InvalidInput(f"{bytes_max} bytes cannot be read; give 1 or more")
        return self._scrollback.read(cursor, bytes_max)

    async def follow(self, cursor: int, bytes_max: int) -> AsyncGenerator[TerminalOutput, None]:
        """Piece by piece from the cursor on, until the program has ended and all of it was given."""
        at = self._scrollback.position(cursor)
        while True:
            piece = self.read(at, bytes_max)
            if piece.data or piece.dropped:
                at = piece.cursor
                yield piece
            elif self._scrollback.complete:
                return
            else:
                self._more = self._more or anyio.Event()
                await self._more.wait()

    async def write(self, data: bytes) -> None:
        """Give the program input, whole, after what others write at the same time."""
        if len(data) > WRITE_BYTES_MAX:
            raise InvalidInput(f"{len(data):,} bytes are too many at once: at most {WRITE_BYTES_MAX:,}")
        async with self._writing:
            left = memoryview(data)
            with anyio.move_on_after(WRITE_S):
                while left:
                    self._require_running()
                    try:
                        left = left[os.write(self._device.master, left) :]
                    except BlockingIOError:
                        with contextlib.suppress(anyio.ClosedResourceError):  # It ends meanwhile.
                            await anyio.wait_writable(self._device.master)
                    except OSError as error:
                        raise Refused(f"terminal {self.info.id} takes no input: {error.strerror}") from error
            self._require_running()
            if left:
                raise Refused(
                    f"the program of terminal {self.info.id} reads no input: "
                    f"{len(data) - len(left):,} of {len(data):,} bytes were written"
                )

    def resize(self, rows: int, cols: int) -> None:
        """Set the size; the program gets SIGWINCH if it is another one."""
        self._require_running()
        self._device.resize(rows, cols)

    def rename(self, title: str) -> None:
        """Give it another title."""
        self.info = replace(self.info, title=title)

    def _require_running(self) -> None:
        if not self.running:
            raise Refused(
                f"terminal {self.info.id} has ended with exit code {self.info.exit_code}; create another"
            )
        if not self._device.open:
            raise Refused(f"terminal {self.info.id} is closed; create another")

    def hang_up(self) -> None:
        """Close the device: the kernel sends SIGHUP, as at a closed window, and shells end their jobs."""
        self._close_device()

    async def over(self) -> None:
        """Return when the program has ended and its last output was taken."""
        await self._over.wait()

    async def close(self) -> None:
        """Be over, also where the program cannot be ended (it hangs in the kernel)."""
        with anyio.move_on_after(END_S):
            await self._over.wait()
        self._task.cancel()
        await asyncio.wait([self._task])
        if self.running:
            self._finish(_SIGNALLED + signal.SIGKILL)

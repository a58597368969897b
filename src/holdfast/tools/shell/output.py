"""The output of a command as it comes: its end in memory, all of it in a Managed Tool Output File.

What must stay true: memory holds a bounded piece, however much a command prints; the file is made when the
output no longer fits into a record, and holds every piece once and in its order, whoever writes at the same
time or is cancelled; what the model gets is valid text within the limits of a settlement.
"""

import contextlib
import re
import threading
from collections import deque
from typing import Final

import anyio.to_thread

from holdfast.tools import bound
from holdfast.tools.bound import OutputLimits
from holdfast.tools.managed_output import ManagedOutput, OutputFile

SHOWN_CHARS: Final = 30_000
"""How much of its end is shown while a command runs."""
_TAIL_BYTES: Final = 256 * 1024
_WRITE_BYTES: Final = 256 * 1024
_NOTE_BYTES: Final = 400
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_CONTINUES: Final = range(0x80, 0xC0)


class Output:
    """What a command has printed so far."""

    def __init__(self, managed: ManagedOutput, limits: OutputLimits | None = None) -> None:
        self._managed = managed
        self._limits = limits or OutputLimits()
        self._file: OutputFile | None = None
        self._unwritten: deque[bytes] = deque()
        self._written = 0
        """How many bytes were handed to the file, or could not be."""
        self._writing = threading.Lock()
        self._tail = bytearray()
        self._lines = 0
        self.size = 0
        self.lossy = False
        """Whether something was left out that is kept nowhere."""

    @property
    def path(self) -> str | None:
        """The file with all of it; None where it fits into the record, or could not be kept."""
        return None if self._file is None else self._file.path

    async def take(self, data: bytes) -> None:
        """Take a piece."""
        self.size += len(data)
        self._lines += data.count(b"\n")
        self._tail += data
        if len(self._tail) > 2 * _TAIL_BYTES:
            del self._tail[:-_TAIL_BYTES]
        if self.lossy:
            return
        self._unwritten.append(data)
        is_long = self.size > self._limits.bytes_max or self._lines >= self._limits.lines_max
        if (self._file is None and is_long) or self.size - self._written > _WRITE_BYTES:
            await self.write()

    async def write(self) -> None:
        """Write what is not in the file yet, making the file if there is none."""
        await anyio.to_thread.run_sync(self._write)

    def _write(self) -> None:
        """Pieces leave the queue here, in the thread: who is cancelled before it began has taken nothing."""
        with self._writing:
            data = b"".join(self._unwritten.popleft() for _ in range(len(self._unwritten)))
            self._written += len(data)
            try:
                if self._file is None:
                    self._file = self._managed.create()
                self.lossy = not self._file.write(data) or self.lossy
            except OSError:
                self.lossy = True

    async def finish(self) -> None:
        """Put the file on disk, if there is one."""
        if self._file is not None:
            await self.write()
            await anyio.to_thread.run_sync(self._finish, self._file)

    def _finish(self, file: OutputFile) -> None:
        with self._writing, contextlib.suppress(OSError):
            file.finish()

    def shown(self) -> str:
        """The last characters, for whoever watches."""
        text = text_of(bytes(self._tail[-4 * SHOWN_CHARS :]))
        is_whole = len(text) <= SHOWN_CHARS and self.size <= 4 * SHOWN_CHARS
        return text if is_whole else f"...{text[-SHOWN_CHARS:]}"

    def text(self, note: str = "") -> str:
        """What the model gets: all of it, or its end below a line that says where the rest is, and a note."""
        limits = self._limits
        room = OutputLimits(
            lines_max=limits.lines_max - note.count("\n") - 4,
            bytes_max=limits.bytes_max - len(note.encode()) - _NOTE_BYTES - len(self.path or ""),
        )
        whole = text_of(bytes(self._tail)).rstrip("\n") if self.size <= _TAIL_BYTES else None
        if whole is not None and bound.fits(whole, room):
            return "\n\n".join(each for each in (whole or "(no output)", note) if each)
        end = bound.tail(text_of(bytes(self._tail[-max(room.bytes_max, 1) :])).rstrip("\n"), room)
        return "\n\n".join(each for each in (self._missing(end), end, note) if each)

    def _missing(self, end: str) -> str:
        left_out = max(0, self.size - len(end.encode()))
        if self.path is None:
            where = "and could not be kept"
        elif self.lossy:
            where = f"and {self.path} holds only the beginning: search it, or read it in parts"
        else:
            where = f"and all of it is in {self.path}: search that file, or read it in parts"
        return f"[... {left_out} bytes before this are left out, {where} ...]"


def text_of(data: bytes) -> str:
    """Bytes as text that can be recorded; what is none is replaced, and a cut character dropped."""
    start = 0
    while start < min(4, len(data)) and data[start] in _CONTINUES:
        start += 1
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", data[start:].decode("utf-8", "replace"))

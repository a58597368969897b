"""Processes in the background of a session, as tools see them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from holdfast.toolkit.box import Box


class ProcessInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a session. Without an `end` it runs; `exit` is None also where that is not known."""

    id: str
    command: str
    pid: int
    start: int
    end: int | None = None
    exit: int | None = None
    path: str | None = None
    """The file with its output."""
    size: int = 0
    """How many bytes it has printed."""


class CommandOutput(Protocol):
    """Takes what a command prints, and keeps it in a file."""

    size: int

    @property
    def path(self) -> str | None: ...
    async def take(self, data: bytes) -> None: ...
    async def write(self) -> None: ...
    async def finish(self) -> None: ...


class Processes(Protocol):
    """The processes of a call's session in this process of ours; they end with it."""

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        command: str,
        output: CommandOutput,
        box: Box,
    ) -> ProcessInfo:
        """Start one in a box and return; `ToolFailure` where that is not possible, or too many run."""

    def list(self) -> list[ProcessInfo]:
        """Those that run, and the last that have ended."""

    async def read(self, id: str, cursor: int | None, bytes_max: int) -> tuple[bytes, int]:
        """What it printed from a cursor on, or since the last reading, and the cursor after that."""

    async def stopped(self, id: str, text: str) -> Sequence[str]:
        """What its box stopped, in words, by a piece of its output and, once it has ended, by the kernel's
        count.
        """

    async def wait(self, id: str, timeout_ms: int) -> ProcessInfo:
        """Wait until it ends, or for so long."""

    async def write(self, id: str, text: str) -> None:
        """Write to its input; an empty text ends the input."""

    async def end(self, id: str) -> ProcessInfo:
        """End it: TERM, then KILL after 3 s."""

"""A terminal of the user, and what was printed on it."""

from typing import Literal

import msgspec

from holdfast.schema.ids import PtyID
from holdfast.schema.wire import Count, Record

TerminalStatus = Literal["running", "exited"]


class Terminal(Record, frozen=True, kw_only=True):
    """A program on a pseudo-terminal, as clients know it. It is never stored."""

    id: PtyID
    title: str
    command: str
    args: list[str]
    cwd: str
    status: TerminalStatus
    pid: Count
    exit_code: Count | None = None
    """How the program ended; 128 and the number of the signal that ended it."""


class TerminalOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of what was printed. `cursor` is where the next one begins, counted in bytes."""

    data: bytes
    cursor: int
    dropped: int = 0
    """How many bytes before `data` are no longer held."""

    @property
    def text(self) -> str:
        """The piece as text. No piece ends inside a character, unless the output itself does."""
        return self.data.decode("utf-8", "replace")

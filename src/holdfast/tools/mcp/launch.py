"""How the program of a local server is started: what it runs, where, and with what.

The runtime makes these: it knows the environment of commands and the box around them.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from holdfast.tools.mcp.server import Server


class Launching(Protocol):
    """One start of a program."""

    @property
    def command(self) -> list[str]: ...
    @property
    def env(self) -> dict[str, str]: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the program needs beside standard input and output."""

    def began(self) -> None:
        """The program was started."""


Launch = Callable[[Server], Awaitable[AbstractContextManager[Launching]]]
"""Prepares a start, until the program has ended. `ContextError` where it must not be started."""

"""Terminals for tests: all of a process, what they announce, and what is shown on one."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from holdfast import processes
from holdfast.clock import SystemClock
from holdfast.location.terminal.open_terminal import OpenTerminal
from holdfast.location.terminal.scrollback import PIECE_BYTES_MAX
from holdfast.location.terminal.terminals import NewTerminal, Terminals
from holdfast.schema.ids import Mint
from holdfast.schema.terminal import Terminal
from holdfast.schema.terminal_event import TerminalEvent

PATIENCE_S = 60.0
PROMPT = "ready> "
CTRL_C, CTRL_D, ESCAPE = b"\x03", b"\x04", b"\x1b"


class Desk:
    """Terminals in one folder, and the events that they have published."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.events: list[tuple[TerminalEvent, str]] = []
        self.terminals = Terminals(
            Mint(SystemClock()), lambda event, where: self.events.append((event, where)), **options
        )

    def new(self, command: str, args: Sequence[str] = (), **more: Any) -> NewTerminal:
        """A terminal in the folder, with an environment that does not depend on the tester's."""
        here = str(self.folder)
        env = {"PATH": os.environ["PATH"], "HOME": here, "PS1": PROMPT, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        return NewTerminal(command=command, args=args, directory=here, cwd=here, **{"env": env, **more})

    async def open(self, command: str, args: Sequence[str] = (), **more: Any) -> OpenTerminal:
        """Start a program."""
        return self.terminals.get((await self.terminals.create(self.new(command, args, **more))).id)

    async def sh(self, script: str) -> OpenTerminal:
        """Start a script of the shell."""
        return await self.open("/bin/sh", ("-c", script))


@asynccontextmanager
async def desk(folder: Path, **options: Any) -> AsyncIterator[Desk]:
    """Terminals, ended with the block; nothing that they started is left."""
    made = Desk(folder, **options)
    try:
        yield made
    finally:
        await made.terminals.close()


async def shown(terminal: OpenTerminal, wanted: str, cursor: int = 0) -> int:
    """Wait until a text was printed after the cursor; where it ends."""
    text = ""
    with anyio.move_on_after(PATIENCE_S):
        async with aclosing(terminal.follow(cursor, PIECE_BYTES_MAX)) as pieces:
            async for piece in pieces:
                text += piece.text
                if wanted in text:
                    return piece.cursor
    raise AssertionError(f"{wanted!r} was not printed, but {text[-2000:]!r}")


async def all_of(terminal: OpenTerminal, cursor: int = 0) -> bytes:
    """Everything that is printed until the program has ended."""
    data = b""
    with anyio.fail_after(PATIENCE_S):
        async with aclosing(terminal.follow(cursor, PIECE_BYTES_MAX)) as pieces:
            async for piece in pieces:
                data += piece.data
    return data


async def over(terminal: OpenTerminal) -> Terminal:
    """Wait until a program has ended: how."""
    with anyio.fail_after(PATIENCE_S):
        await terminal.over()
    return terminal.info


def descriptors() -> int:
    """How many are open in this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def runs(pid: int) -> bool:
    """Whether a process runs; one that was not waited for does not."""
    return bool(processes.started(pid))

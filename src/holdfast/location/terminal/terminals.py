"""The terminals of this process. None outlives it: a guard ends them if it is killed, or paused for long.

What must stay true: the guard knows a program before it begins; no more than `TERMINALS_MAX` terminals are
held, those that have ended included; what is removed is ended with everything that it has started.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from holdfast import processes
from holdfast.errors import ContextError, InvalidInput, NotFound, Refused
from holdfast.location.guard import Guard
from holdfast.location.guard_process import awake_ms
from holdfast.location.terminal.device import COLS, ROWS, Device
from holdfast.location.terminal.open_terminal import OpenTerminal
from holdfast.location.terminal.scrollback import SCROLLBACK_BYTES_MAX
from holdfast.location.terminal.start import start
from holdfast.schema.ids import Mint, PtyID
from holdfast.schema.terminal import Terminal
from holdfast.schema.terminal_event import (
    OfPty,
    PtyCreated,
    PtyDeleted,
    PtyExited,
    PtyExitProperties,
    PtyProperties,
    PtyUpdated,
    TerminalEvent,
)
from holdfast.text import one_line, quoted

TERMINALS_MAX: Final = 64
PAUSED_MS: Final = 60_000
"""After a pause of this process for so long, its terminals are ended. Sleep of the machine does not count."""
RENEW_S: Final = 5.0
TITLE_CHARS_MAX: Final = 200

Publish = Callable[[TerminalEvent, str], None]
"""Announces an event, with the directory that it belongs to."""


class NewTerminal(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal that is wanted; paths are resolved, the environment is complete."""

    command: str
    args: Sequence[str]
    directory: str
    cwd: str
    env: Mapping[str, str]
    title: str | None = None
    rows: int = ROWS
    cols: int = COLS


class Terminals:
    """All terminals, oldest first."""

    def __init__(
        self, mint: Mint, publish: Publish, *, scrollback_bytes_max: int = SCROLLBACK_BYTES_MAX
    ) -> None:
        self._mint = mint
        self._publish = publish
        self._scrollback_bytes_max = scrollback_bytes_max
        self._guard = Guard(sleep_counts=False)
        self._open: dict[str, OpenTerminal] = {}
        self._starting = 0
        self._started = anyio.Event()
        """Set when the last of those that start has started."""
        self._closed = False
        self._renewal: asyncio.Task[None] | None = None

    async def create(self, new: NewTerminal) -> Terminal:
        """Start a program on a new terminal."""
        if not new.command:
            raise InvalidInput("a terminal needs a program; leave it out for the user's shell")
        id = PtyID(self._mint.ascending("pty"))
        title = f"Terminal {id[-4:]}" if new.title is None else checked_title(new.title)
        self._make_room()
        self._starting += 1
        self._started = anyio.Event()
        try:
            # Whole or not at all: a cancelled caller must leave no program without an owner.
            with anyio.CancelScope(shield=True):
                info = await self._start(id, title, new)
        finally:
            self._starting -= 1
            if not self._starting:
                self._started.set()
        return info

    def _make_room(self) -> None:
        if self._closed:
            raise Refused("this runtime is closed, and starts no terminal any more")
        while len(self._open) + self._starting >= TERMINALS_MAX:
            ended = next((each for each in self._open.values() if not each.running), None)
            if ended is None:
                raise Refused(f"{TERMINALS_MAX} terminals are open; remove one of them first")
            self._forget(ended)

    async def _start(self, id: PtyID, title: str, new: NewTerminal) -> Terminal:
        device = Device(new.rows, new.cols)
        mark = secrets.token_hex(8)
        try:
            self._guard.renew(awake_ms() + PAUSED_MS)
            self._guard.expect(mark)
            process = await start(
                (new.command, *new.args), cwd=new.cwd, env=new.env, mark=mark, terminal=device.slave
            )
            self._guard.watch(process.pid, processes.started(process.pid), mark)
        except BaseException as error:
            device.close()
            with contextlib.suppress(OSError):
                self._guard.unexpect(mark)
            if isinstance(error, OSError):
                await anyio.to_thread.run_sync(lambda: processes.end_group(0, "", mark=mark))
                raise ContextError(f"{error.strerror or error}: the terminal was not started") from error
            raise
        info = Terminal(
            id=id,
            title=title,
            command=new.command,
            args=list(new.args),
            cwd=new.cwd,
            status="running",
            pid=process.pid,
        )
        made = OpenTerminal(
            info,
            device,
            process,
            directory=new.directory,
            scrollback_bytes_max=self._scrollback_bytes_max,
            ended=self._ended,
        )
        self._open[id] = made
        self._publish(PtyCreated(properties=PtyProperties(info=info)), new.directory)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(), name="holdfast-terminals")
        return info

    async def _renew(self) -> None:
        """While a terminal runs, show the guard that this process does too."""
        while any(each.running for each in self._open.values()):
            self._guard.renew(awake_ms() + PAUSED_MS)
            await anyio.sleep(RENEW_S)

    def _ended(self, ended: OpenTerminal) -> None:
        """Its program is gone: whatever it has started ends too."""
        self._end_group(ended)
        code = ended.info.exit_code
        assert code is not None
        exited = PtyExitProperties(id=ended.info.id, exit_code=code)
        self._publish(PtyExited(properties=exited), ended.directory)

    def _end_group(self, terminal: OpenTerminal) -> None:
        with contextlib.suppress(OSError):  # No guard can be started; the hang-up has reached most.
            self._guard.end(terminal.info.pid)

    def of(self, directory: str | None = None) -> list[Terminal]:
        """The terminals, or those of one directory, oldest first."""
        return [each.info for each in self._open.values() if directory is None or each.directory == directory]

    def get(self, id: str) -> OpenTerminal:
        """One of them, or `NotFound`."""
        found = self._open.get(id)
        if found is None:
            raise NotFound(f"terminal {quoted(id, 60)} does not exist in this process")
        return found

    def rename(self, id: str, title: str) -> Terminal:
        """Give one another title."""
        terminal = self.get(id)
        terminal.rename(checked_title(title))
        self._publish(PtyUpdated(properties=PtyProperties(info=terminal.info)), terminal.directory)
        return terminal.info

    async def remove(self, id: str) -> None:
        """End one with everything that it has started, and forget it."""
        terminal = self.get(id)
        self._forget(terminal)
        with anyio.CancelScope(shield=True):
            await self._end(terminal)

    def _forget(self, terminal: OpenTerminal) -> None:
        del self._open[terminal.info.id]
        self._publish(PtyDeleted(properties=OfPty(id=terminal.info.id)), terminal.directory)

    async def _end(self, terminal: OpenTerminal) -> None:
        terminal.hang_up()
        self._end_group(terminal)
        await terminal.close()

    async def close(self) -> None:
        """End all of them, and return when nothing that they have started is left."""
        self._closed = True
        if self._starting:
            await self._started.wait()
        async with anyio.create_task_group() as ending:
            for each in self._open.values():
                ending.start_soon(self._end, each)
        self._open.clear()
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        await anyio.to_thread.run_sync(self._guard.close)


def checked_title(title: str) -> str:
    """The title on one line; `InvalidInput` if it is empty or too long."""
    if not isinstance(title, str) or not (line := one_line(title, TITLE_CHARS_MAX + 1)):
        raise InvalidInput("a title has at least one character that can be seen")
    if len(line) > TITLE_CHARS_MAX:
        raise InvalidInput(f"a title has at most {TITLE_CHARS_MAX} characters; this one has {len(title)}")
    return line

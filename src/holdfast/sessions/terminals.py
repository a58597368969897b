"""What a caller may do with terminals: programs of the user on pseudo-terminals of this process.

They belong to no session, and no rule is asked: a terminal is the user's own, as at a window. It lives no
longer than this process; everything that it has started is ended with it.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from holdfast.errors import ContextError, InvalidInput
from holdfast.feed.tail import Feed
from holdfast.location.project import Location, is_utf8
from holdfast.location.terminal.device import COLS, ROWS
from holdfast.location.terminal.environment import PtyEnvironment, checked, merged
from holdfast.location.terminal.scrollback import PIECE_BYTES_MAX
from holdfast.location.terminal.terminals import NewTerminal, Terminals
from holdfast.schema.session import Session
from holdfast.schema.terminal import Terminal, TerminalOutput
from holdfast.schema.terminal_event import TerminalEvent
from holdfast.schema.wire import encode
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.create import locate_directory, new_session
from holdfast.text import quoted
from holdfast.tools.plain import described
from holdfast.tools.shell import own_shell
from holdfast.workspace import command_environment
from holdfast.workspace.plugins import WorkspacePlugins
from holdfast.workspace.workspace import Workspace

OVERLAY_S: Final = 10.0


class TerminalService:
    """The terminals of this process; `overlay` is the host's part of their environment."""

    def __init__(
        self,
        access: StoreAccess,
        feed: Feed,
        workspace: Callable[[Session], Awaitable[Workspace]],
        plugins: WorkspacePlugins,
        overlay: PtyEnvironment,
    ) -> None:
        self._access = access
        self._feed = feed
        self._workspace = workspace
        self._plugins = plugins
        self._overlay = overlay
        self._terminals = Terminals(access.mint, self._publish)

    def _publish(self, event: TerminalEvent, directory: str) -> None:
        self._feed.publish(event.type, None, encode(event.properties), directory=directory)

    async def create(
        self,
        command: str | None = None,
        args: Sequence[str] = (),
        *,
        directory: str | os.PathLike[str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        title: str | None = None,
        env: Mapping[str, str] | None = None,
        rows: int = ROWS,
        cols: int = COLS,
    ) -> Terminal:
        """Start a program on a new terminal; without a command, the user's shell as a login shell.

        `directory` is the Location that it belongs to, by default the current one; `cwd` is where the program
        begins, by default there. The environment is that of the user's own commands, with `env` over it, then
        what plugins (`shell.env`) and the host add, then `TERM` and what marks a terminal of ours.
        """
        here = await locate_directory(self._access, directory if directory is not None else Path.cwd())
        folder = await anyio.to_thread.run_sync(_folder, here.directory, cwd)
        # Settings are read for sessions; this one is never stored.
        workspace = await self._workspace(new_session(self._access, here))
        if command is None:
            command, first = own_shell.interactive(wanted=workspace.loaded.config.shell)
            args = (*first, *args)
        base = command_environment.base(workspace)
        overlay = await self._added(here, folder, workspace)
        return await self._terminals.create(
            NewTerminal(
                command=command,
                args=_arguments(args),
                directory=here.directory,
                cwd=folder,
                env=merged(base, env or {}, overlay, cwd=folder),
                title=title,
                rows=rows,
                cols=cols,
            )
        )

    async def _added(self, here: Location, cwd: str, workspace: Workspace) -> dict[str, str]:
        """What plugins add, then what the host adds."""
        added = await command_environment.added(self._plugins.of(workspace), cwd)
        try:
            with anyio.fail_after(OVERLAY_S):
                return {**added, **checked(await self._overlay(here, cwd))}
        except Exception as error:  # Code of the host: whatever it is.
            raise ContextError(
                f"the environment that the host adds to terminals: {described(error)}"
            ) from error

    async def list(self, *, directory: str | os.PathLike[str] | None = None) -> Sequence[Terminal]:
        """The terminals, oldest first, those that have ended included; or those of one directory."""
        return self._terminals.of(_real(directory))

    async def get(self, id: str) -> Terminal:
        """One terminal as it is now."""
        return self._terminals.get(id).info

    async def rename(self, id: str, title: str) -> Terminal:
        """Give a terminal another title."""
        return self._terminals.rename(id, title)

    async def resize(self, id: str, *, rows: int, cols: int) -> Terminal:
        """Set the size of a terminal; its program is told (SIGWINCH)."""
        terminal = self._terminals.get(id)
        terminal.resize(rows, cols)
        return terminal.info

    async def write(self, id: str, data: str | bytes) -> None:
        """Type on a terminal. Waits while its program reads no input, within a bound; then `Refused`."""
        await self._terminals.get(id).write(_bytes(data))

    async def read(self, id: str, cursor: int = 0, *, bytes_max: int = PIECE_BYTES_MAX) -> TerminalOutput:
        """What was printed from the cursor on, up to `bytes_max`; it is empty when there is nothing yet.

        The last 2 MiB are kept: a cursor before them gets what is left, and `dropped` says how much is not.
        """
        return self._terminals.get(id).read(cursor, bytes_max)

    async def follow(
        self, id: str, cursor: int = 0, *, bytes_max: int = PIECE_BYTES_MAX
    ) -> AsyncGenerator[TerminalOutput, None]:
        """What is printed from the cursor on (-1: from now on), as it comes, until the terminal is over.

        Each follower goes at its own pace. One that falls behind by more than is kept misses what was
        dropped, and is told how much; it holds up neither the program nor another follower.
        """
        async for piece in self._terminals.get(id).follow(cursor, bytes_max):
            yield piece

    async def wait(self, id: str) -> Terminal:
        """Return when the program has ended: how."""
        terminal = self._terminals.get(id)
        await terminal.over()
        return terminal.info

    async def remove(self, id: str) -> None:
        """End a terminal with everything that it has started, and forget what was printed on it."""
        await self._terminals.remove(id)

    async def close(self) -> None:
        """End all terminals."""
        await self._terminals.close()


def _real(directory: str | os.PathLike[str] | None) -> str | None:
    """A directory as terminals name theirs."""
    return None if directory is None else os.path.realpath(directory)


def _folder(directory: str, cwd: str | os.PathLike[str] | None) -> str:
    """The working directory, resolved."""
    given = "" if cwd is None else os.fspath(cwd)
    shown = quoted(given, 200)
    if not isinstance(given, str) or "\0" in given:
        raise InvalidInput("the working directory is not a path")
    real = os.path.realpath(Path(directory) / given)
    if not os.path.isdir(real):  # noqa: PTH112 - false, and no error, for what is too long
        raise InvalidInput(f"{shown} is not a directory; create it or name another")
    if not is_utf8(real):
        raise InvalidInput(f"the name of {shown} is not UTF-8, so it cannot be shown; rename it")
    return real


def _arguments(args: Sequence[str]) -> tuple[str, ...]:
    if isinstance(args, str) or not all(isinstance(each, str) for each in args):
        raise InvalidInput("the arguments of a program are a list of texts")
    return tuple(args)


def _bytes(data: str | bytes) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return data.encode()
    except (UnicodeEncodeError, AttributeError) as error:
        raise InvalidInput("input for a terminal is text or bytes") from error

"""Which projects this process watches: those of sessions that it runs, or that a client of it follows.

Used only with the flag EXPERIMENTAL_WATCHER. What must stay true: a watch publishes events and does nothing
else, so it wakes no session; its holder neither waits for it nor fails with it; sessions of one project share
one.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from holdfast.errors import HoldfastError
from holdfast.workspace.workspace import Workspace

WATCHES_MAX: Final = 16
"""A system has a bounded number of watchers for all programs of a user."""
CLOSE_S: Final = 2.0

Publish = Callable[[str, str, frozenset[str]], None]
"""Publishes that a file has changed, and how, to clients of these sessions and to those of all."""


class _Watch:
    """A project that is watched, and for which sessions."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.stop = threading.Event()
        self.task: asyncio.Task[None] | None = None


class Watches:
    """The watched projects of one process."""

    def __init__(
        self,
        find: Callable[[str], Awaitable[Workspace | None]],
        publish: Publish,
        warn: Callable[[str], None],
    ) -> None:
        """`find` gives the workspace of a session."""
        self._find = find
        self._publish = publish
        self._warn = warn
        self._holders: Counter[str] = Counter()
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[Path, _Watch] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @contextmanager
    def hold(self, session: str) -> Iterator[None]:
        """Watch the session's project until the block ends."""
        self._holders[session] += 1
        if self._holders[session] == 1:
            self._starts[session] = asyncio.create_task(self._start(session))
        try:
            yield
        finally:
            self._holders[session] -= 1
            if not self._holders[session]:
                del self._holders[session]
                self._release(session)

    async def _start(self, session: str) -> None:
        try:
            here = await self._find(session)
        except HoldfastError as error:
            self._warn(f"the files of session {session} are not watched: {error}")
            return
        if here is None or not here.is_here:
            return
        worktree, directory = Path(here.places.worktree), Path(here.places.directory)
        top = directory if worktree.parent == worktree else worktree
        if Path.home().is_relative_to(top):
            self._warn(f"{top} holds more than a project; its files are not watched")
            return
        watch = self._watches.get(top)
        if watch is None and len(self._watches) >= WATCHES_MAX:
            self._warn(f"{WATCHES_MAX} projects are watched already; the files of {top} are not")
            return
        if watch is None:
            watch = self._watches[top] = _Watch()
            settings = here.loaded.config.watcher
            ignore = (settings.ignore if settings is not None else None) or ()
            watch.task = asyncio.create_task(self._watch(top, watch, tuple(ignore)))
        watch.sessions.add(session)

    async def _watch(self, top: Path, watch: _Watch, ignore: tuple[str, ...]) -> None:
        from holdfast.location import file_watch

        loop = asyncio.get_running_loop()

        def publish(events: list[tuple[str, file_watch.FileEvent]]) -> None:
            loop.call_soon_threadsafe(shown, events)

        def shown(events: list[tuple[str, file_watch.FileEvent]]) -> None:
            for path, event in events:
                self._publish(path, event, frozenset(watch.sessions))

        def warn(line: str) -> None:
            loop.call_soon_threadsafe(self._warn, line)

        def run() -> None:
            file_watch.watch(top, ignore, watch.stop, publish, warn)

        # A thread of its own, not one of those that all others share.
        await anyio.to_thread.run_sync(run, limiter=anyio.CapacityLimiter(1))

    def _release(self, session: str) -> None:
        start = self._starts.pop(session, None)
        if start is None:
            return  # It was closed before its holder was done.
        start.cancel()
        for top, watch in list(self._watches.items()):
            watch.sessions.discard(session)
            if not watch.sessions:
                del self._watches[top]
                watch.stop.set()
                if watch.task is not None:
                    self._ending.add(watch.task)
                    watch.task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End every watch; the threads end within a step."""
        for session in list(self._starts):
            self._release(session)
        if self._ending:
            await asyncio.wait(self._ending, timeout=CLOSE_S)

"""An examination under way: how far it has come, and whether it shall end.

A large store takes long to examine, in a thread that nothing cancels from outside: so the thread says where
it is, and learns there that nobody waits for it any more.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from holdfast.store.report import Progress

T = TypeVar("T")

PAUSE_S: Final = 0.1
"""The least time between two reports."""
STEPS: Final = 10_000
"""How many steps of SQLite's own lie between two looks whether to end."""


class Ended(Exception):
    """Nobody waits for the examination any more."""


class Interruptible(Protocol):
    """The part of `apsw.Connection` by which a long statement is ended."""

    def set_progress_handler(self, callable: Callable[[], bool] | None, nsteps: int = ...) -> None: ...


class Examining:
    """One examination."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._ended = threading.Event()
        self._next_s = 0.0

    def at(self, what: str, done: int = 0, total: int = 0) -> None:
        """Say where the work is; `Ended` when it shall go no further."""
        if self._ended.is_set():
            raise Ended
        if self._progress is not None and (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + PAUSE_S
            self._progress(what, done, total)

    def is_ended(self) -> bool:
        """Whether the work shall go no further."""
        return self._ended.is_set()

    def end(self) -> None:
        """Let the work end as soon as it says where it is."""
        self._ended.set()

    @contextmanager
    def statements(self, db: Interruptible) -> Iterator[None]:
        """Meanwhile a statement of the connection ends, too, when the examination does."""
        db.set_progress_handler(self.is_ended, STEPS)
        try:
            yield
        finally:
            db.set_progress_handler(None)

    async def wait(self, work: Awaitable[T]) -> T:
        """The outcome of the work, which ends when the wait for it does."""
        try:
            return await work
        except asyncio.CancelledError:
            self.end()
            raise

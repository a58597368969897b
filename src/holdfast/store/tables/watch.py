"""Learns of commits: those of this process at once, those of others through a touched file.

The wake file holds the mark of the process that wrote it last. A process ignores its own mark, because it
wakes its own watchers directly, after the write: whatever another process committed before is then visible.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.store.watch import StoreWatch

POLL_S = 1.0
BLIND_POLL_S = 0.02
"""Where no file events can be had, asking the store itself stands in."""

_IN_MODIFY = 0x2


class Wakes:
    """The watches of this process, and the one file watch behind them."""

    def __init__(
        self, path: Path, others: Callable[[], None] = lambda: None, *, readonly: bool = False
    ) -> None:
        self._path = path
        self._others = others
        """Called when another process may have committed; by the writer's thread too."""
        self._mark = os.urandom(8)
        self._fd: int | None = None
        with suppress(*((FileNotFoundError, PermissionError) if readonly else ())):
            self._fd = os.open(path, (os.O_RDONLY if readonly else os.O_RDWR) | os.O_CLOEXEC)
        self._inotify: int | None = None
        self._loop = asyncio.get_running_loop()
        self._watches: set[StoreWatch] = set()
        self._poll: asyncio.TimerHandle | None = None
        self.poll_s = POLL_S

    def written(self) -> None:
        """After a commit, in the writer's thread: wake the other processes. Our own are woken by `wake`."""
        with suppress(OSError):
            if not self._is_ours():
                self._others()
            if self._fd is not None:
                os.pwrite(self._fd, self._mark, 0)

    def wake(self) -> None:
        """Wake every watch, in the event loop."""
        for watch in self._watches:
            watch.event.set()

    def _look(self) -> None:
        """Once in a while every watch looks at the store itself: a wake may be lost."""
        self._others()
        self.wake()
        self._poll = self._loop.call_later(self.poll_s, self._look)

    def join(self) -> StoreWatch:
        """Begin to wait."""
        if not self._watches:
            self._inotify = _inotify(self._path)
            if self._inotify is None:
                self.poll_s = BLIND_POLL_S
            else:
                self._loop.add_reader(self._inotify, self._on_file_event)
            self._poll = self._loop.call_later(self.poll_s, self._look)
        watch = StoreWatch(self.leave, lambda: None)  # `_look` ends every wait.
        self._watches.add(watch)
        return watch

    def leave(self, watch: StoreWatch) -> None:
        """The last one to leave closes the file watch."""
        self._watches.discard(watch)
        if not self._watches and self._poll is not None:
            self._poll.cancel()
            self._poll = None
        if not self._watches and self._inotify is not None:
            self._loop.remove_reader(self._inotify)
            os.close(self._inotify)
            self._inotify = None

    def _on_file_event(self) -> None:
        assert self._inotify is not None
        with suppress(BlockingIOError):
            os.read(self._inotify, 65536)
        if not self._is_ours():
            self._others()
            self.wake()

    def _is_ours(self) -> bool:
        return self._fd is not None and os.pread(self._fd, len(self._mark), 0) == self._mark

    def close(self) -> None:
        """End every watch."""
        for watch in tuple(self._watches):
            watch.event.set()
            self.leave(watch)
        if self._fd is not None:
            os.close(self._fd)


def _inotify(path: Path) -> int | None:
    """A descriptor that becomes readable when the file is written; None where the system has none."""
    if sys.platform != "linux":
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd

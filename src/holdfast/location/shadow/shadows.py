"""The shadow repositories that this process uses, one for each worktree.

What must stay true: one task of this process works in a repository at a time, in a thread, and waits for it
no longer than it said; what takes longer goes on in its thread, under the repository's own lock.
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from holdfast.errors import ContextError, HoldfastError, Refused
from holdfast.location.shadow import budget, place, repository
from holdfast.location.shadow.repository import Shadow, Tree
from holdfast.log import event
from holdfast.person import directories

T = TypeVar("T")

KNOWN_MAX: Final = 1_000
CHECKED_EACH: Final = 100
"""So many trees are taken before the room that they take is looked at."""
CHECKED_PARTS: Final = 16
"""Or what they hold is so large a part of the budget."""
CHECK_S: Final = 600.0


class Shadows:
    """Finds the shadow repository of a worktree. `data`: the folder of all of them, else the user's."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._known: dict[tuple[str, Path], Worker] = {}

    def at(self, project: str, worktree: Path) -> "Worker":
        """The repository of a worktree; it need not be there yet. `ContextError` where there can be none."""
        key = (project, worktree)
        if key not in self._known:
            if shutil.which("git") is None:
                raise ContextError("git is not installed, so no snapshots are taken; install it")
            data = self._data or directories.data()
            self._known[key] = Worker(Shadow(place.git_dir(data, project, worktree), worktree), data)
            while len(self._known) > KNOWN_MAX:
                del self._known[next(iter(self._known))]
        return self._known[key]


class Worker:
    """Works in one repository, one task at a time."""

    def __init__(self, shadow: Shadow, data: Path) -> None:
        self.shadow = shadow
        self._lock = anyio.Lock()
        self._unchecked = 0.0
        """How many trees were taken since the last check; large ones count for more."""
        self._checking: asyncio.Task[None] | None = None
        self.budget = budget.BUDGET
        self._refused = _refusal(shadow.worktree, data)

    @property
    def refused(self) -> str | None:
        """Why no trees are taken of the worktree; contents of single files may be kept all the same."""
        return self._refused

    async def run(self, work: Callable[[Shadow], T], *, within_s: float, ends: bool = False) -> T:
        """Do some work in a thread; `ContextError` when it does not end in time. With `ends` git is ended by
        then: for work that is worth nothing later.
        """

        def bounded(shadow: Shadow) -> T:
            if ends:
                repository.within_s.set(within_s)  # Of this thread's context.
            return work(shadow)

        with anyio.move_on_after(within_s):
            async with self._lock:
                return await anyio.to_thread.run_sync(bounded, self.shadow, abandon_on_cancel=True)
        raise ContextError(f"the snapshots of {self.shadow.worktree} took longer than {within_s:g} s")

    async def take(self, folder: str, *, within_s: float) -> Tree:
        """Take a tree. Now and then the repository is brought within its budget afterwards."""
        tree = await self.run(lambda shadow: shadow.take(folder), within_s=within_s)
        self._unchecked += 1 + tree.bytes / self.budget * CHECKED_EACH * CHECKED_PARTS
        if self._unchecked >= CHECKED_EACH:
            self._unchecked = 0.0
            self._checking = asyncio.create_task(self.check())
        return tree

    async def check(self) -> None:
        """Bring the repository within its budget."""
        try:
            await self.run(lambda shadow: budget.enforce(shadow, self.budget), within_s=CHECK_S)
        except (HoldfastError, OSError) as error:
            event.warn("location", "snapshots.unpruned", error=event.where(error))


def _refusal(worktree: Path, data: Path) -> str | None:
    try:
        place.check(worktree, directories.home(), data)
    except Refused as error:
        return str(error)
    return None

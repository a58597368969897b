"""The files that undo may write: those of one worktree, and the shadow repository that keeps their contents.

What must stay true: one process at a time undoes something in a worktree; nothing outside of it, nothing of
git's, and nothing of our own is written.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio.to_thread

from holdfast.errors import Refused, StoreBusy
from holdfast.file_lock import FileLock
from holdfast.location.shadow import place
from holdfast.location.shadow.repository import Shadow
from holdfast.person import directories
from holdfast.person.private import make_folder
from holdfast.schema.session import Session
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.create import locate_directory

LOCK_S: Final = 120.0
"""Whoever holds the lock lives: the system frees that of a process that dies."""


class Worktree:
    """The worktree of a session."""

    def __init__(self, top: Path, shadow: Shadow) -> None:
        self.top = top
        self.shadow = shadow

    def closed(self, paths: Iterable[str]) -> dict[str, str]:
        """The paths that are never written, and why."""
        found = {path: self._closed(Path(path)) for path in paths}
        return {path: why for path, why in found.items() if why is not None}

    def _closed(self, path: Path) -> str | None:
        if not path.is_absolute() or ".." in path.parts or "\0" in str(path):
            return "it is no path that could be written"
        if not path.is_relative_to(self.top) or path == self.top:
            return "it lies outside of the project"
        if any(name.lower() == ".git" for name in path.relative_to(self.top).parts):
            return "it belongs to git"
        if path.is_relative_to(directories.data()):
            return "it belongs to Holdfast itself"
        return None

    def shown(self, path: str) -> str:
        """The path as users see it: from the top of the worktree."""
        real = Path(path)
        return str(real.relative_to(self.top)) if real.is_relative_to(self.top) else path

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Keep other processes from undoing anything here meanwhile."""
        place_ = self.shadow.git_dir
        make_folder(place_.parent)
        lock = FileLock(place_.with_name(f"{place_.name}.undo-lock"))  # The repository may be removed.
        try:
            try:
                await anyio.to_thread.run_sync(lambda: lock.acquire(wait_s=LOCK_S))
            except StoreBusy as error:
                raise Refused(f"another process undoes changes in {self.top}; try again") from error
            yield
        finally:
            lock.close()


async def worktree_of(access: StoreAccess, session: Session) -> Worktree:
    """The worktree of a session of this machine."""
    if session.placement not in (None, access.host.id):
        raise Refused(f"session {session.id} works at placement {session.placement}; undo it there")
    here = await locate_directory(access, session.directory)
    # Outside of a repository the session's folder stands for it.
    top = Path(here.directory if here.vcs is None else here.worktree)
    return Worktree(top, Shadow(place.git_dir(directories.data(), session.project_id, top), top))

"""Reads the workspaces of sessions from the files, when they are needed."""

from collections.abc import Callable
from typing import Final

import anyio.to_thread

from holdfast.errors import InvalidInput
from holdfast.location.project import Location
from holdfast.provider.accounts import credentials
from holdfast.schema.session import Session
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.create import locate_directory
from holdfast.sessions.folder_trust import FolderTrust
from holdfast.workspace import host_settings
from holdfast.workspace.workspace import Workspace, read_workspace

FRESH_MS: Final = 1_000
"""How long one reading is used: for a prompt and its first turns. An edit of the user counts after that."""
KNOWN_MAX: Final = 256


class Workspaces:
    """Reads workspaces. `given` replaces the reading (a caller's own settings)."""

    def __init__(
        self, access: StoreAccess, trust: FolderTrust, given: Callable[[Session], Workspace] | None = None
    ) -> None:
        self._access = access
        self._trust = trust
        self._given = given
        self._known: dict[str, tuple[int, Workspace]] = {}

    async def of(self, session: Session) -> Workspace:
        """The workspace of a session's directory, as it was within the last second."""
        if self._given is not None:
            return self._given(session)
        now_ms = self._access.clock.boot_ms()
        known = self._known.get(session.directory)
        if known is not None and now_ms - known[0] < FRESH_MS:
            return known[1]
        found = await self._read(session)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[session.directory] = (now_ms, found)
        return found

    async def _read(self, session: Session) -> Workspace:
        is_here = True
        try:
            location = await locate_directory(self._access, session.directory)
        # Imported from another machine, or its folder was removed: the session can still be read.
        except InvalidInput:
            is_here = False
            location = Location(session.directory, session.directory, session.project_id)
        decisions = await self._trust.decisions()
        held = host_settings.hosts_of(credentials.load())
        remote = await host_settings.settings_of(held) if held else []
        return await anyio.to_thread.run_sync(
            lambda: read_workspace(location, trusted=decisions.grant, remote=remote, is_here=is_here)
        )

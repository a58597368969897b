"""What the boxes of one process share: the level of the host, a network for each session, and a launcher that
waits for the next command.
"""

import contextlib
from collections import OrderedDict
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from holdfast.location.box import host_level
from holdfast.location.box.host_level import HostLevel
from holdfast.location.box.session_network import SessionNetwork
from holdfast.location.box.waiting_launcher import WaitingLauncher
from holdfast.location.ending_processes import EndingProcesses

NETWORKS_MAX: Final = 64
"""Each costs two descriptors. The one that was used least recently goes first."""


class Boxes:
    """Made once a process, used from one event loop."""

    def __init__(self) -> None:
        self._level: HostLevel | None = None
        self._networks: OrderedDict[str, SessionNetwork] = OrderedDict()
        self._lock = anyio.Lock()
        self._waiting: WaitingLauncher | None = None
        self._ending = EndingProcesses()
        self._is_starting = False
        self._is_closed = False

    async def level(self, state: Path) -> HostLevel:
        """What this host can do."""
        async with self._lock:
            if self._level is None:
                self._level = await anyio.to_thread.run_sync(host_level.host_level, state)
            return self._level

    async def network(self, session: str) -> SessionNetwork:
        """The network that the commands of a session share, made with the first of them."""
        async with self._lock:
            if session not in self._networks:
                self._networks[session] = await anyio.to_thread.run_sync(SessionNetwork)
            self._networks.move_to_end(session)
            if len(self._networks) > NETWORKS_MAX:
                self._networks.popitem(last=False)[1].close()
            return self._networks[session]

    def launcher(self) -> WaitingLauncher | None:
        """The launcher that waits, if there is one; it is the caller's from here on."""
        found, self._waiting = self._waiting, None
        if found is None or found.is_usable:
            return found
        found.discard()
        self._ending.add(found.process)
        return None

    async def start_launcher(self) -> None:
        """Have one ready for the next command; without it that one takes longer, and no more."""
        if self._is_closed or self._is_starting or self._waiting is not None:
            return
        self._is_starting = True
        try:
            with contextlib.suppress(OSError):
                await self._keep(await WaitingLauncher.start())
        finally:
            self._is_starting = False

    async def _keep(self, started: WaitingLauncher) -> None:
        if self._is_closed:  # Meanwhile.
            await started.close()
        else:
            self._waiting = started

    async def close(self) -> None:
        """Let every network and the launcher go, and wait until it has ended; the caller sets a bound."""
        self._is_closed = True
        while self._networks:
            self._networks.popitem()[1].close()
        found, self._waiting = self._waiting, None
        if found is not None:
            found.discard()
            self._ending.add(found.process)
        await self._ending.close()

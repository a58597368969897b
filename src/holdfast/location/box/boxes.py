"""What the boxes of one process share: the level of the host, and a network for each session."""

from collections import OrderedDict
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from holdfast.location.box import host_level
from holdfast.location.box.host_level import HostLevel
from holdfast.location.box.session_network import SessionNetwork

NETWORKS_MAX: Final = 64
"""Each costs two descriptors. The one that was used least recently goes first."""


class Boxes:
    """Made once a process, used from one event loop."""

    def __init__(self) -> None:
        self._level: HostLevel | None = None
        self._networks: OrderedDict[str, SessionNetwork] = OrderedDict()
        self._lock = anyio.Lock()

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

    def close(self) -> None:
        """Let every network go."""
        while self._networks:
            self._networks.popitem()[1].close()

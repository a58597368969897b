"""Takes up the prompts that other processes admitted for this placement, while this process is an owner.

What must stay true: each is tried once. One that could not begin (its session is parked, or damaged, or its
context cannot be read) waits until others come, or a user wakes the session.
"""

import contextlib
from collections.abc import Awaitable, Callable, Container
from typing import Final

import anyio

from holdfast.errors import StoreError
from holdfast.runtime.engine.patience import PatientStore
from holdfast.runtime.inbox import promotion
from holdfast.runtime.process.lease import ProcessLease

LOOK_S: Final = 0.5
"""The least pause between two searches."""


class PlacementPrompts:
    """The search for such prompts. `running` are the sessions that this process works on just now."""

    def __init__(
        self,
        store: PatientStore,
        lease: ProcessLease,
        place: str,
        running: Container[str],
        wake: Callable[[str], Awaitable[None]],
    ) -> None:
        self._store = store
        self._lease = lease
        self._place = place
        self._running = running
        self._wake = wake
        self._taken: dict[str, int] = {}
        """The newest prompts that were taken up."""
        self._closed = False

    def close(self) -> None:
        """Take up no more."""
        self._closed = True

    async def keep(self) -> None:
        """Look whenever something has changed, until cancelled."""
        watch = self._store.watch()
        try:
            while True:
                with contextlib.suppress(StoreError):  # Unreachable: the next look may succeed.
                    await self._look()
                await anyio.sleep(LOOK_S)
                await watch.wait()
        finally:
            watch.close()

    async def _look(self) -> None:
        if self._closed or not self._lease.ids:
            return
        await self._lease.owner()  # One that has lost its lease while nothing ran here is an owner again.
        newest = await promotion.admitted_for(self._store, self._place)
        self._taken = {each: seq for each, seq in self._taken.items() if newest.get(each) == seq}
        for session, seq in newest.items():
            if session not in self._running and session not in self._taken and not self._closed:
                self._taken[session] = seq
                await self._wake(session)

"""This process as an owner: registered when it first claims, renewed while it lives, gone when it closes.

What must stay true: an owner that could not renew stops itself before anybody may bury it. The time since the
last good renewal counts from when it was *sent*, by a clock that counts suspension.
"""

import os
import secrets
from collections.abc import Callable

import anyio

from holdfast.errors import LeaseLost, StoreError
from holdfast.location.guard import Guard
from holdfast.runtime.room import Engine
from holdfast.store.host import this_process
from holdfast.store.owner import LEASE_MS, RENEW_MS

STOP_AFTER_MS = int(0.8 * LEASE_MS)
LATE_MS = LEASE_MS // 20


class Ownership:
    """The lease of this process. `lost` is called when it can no longer be sure of it."""

    def __init__(
        self, engine: Engine, lost: Callable[[], None], placements: tuple[str, ...], guard: Guard
    ) -> None:
        self._guard = guard
        self._engine = engine
        self._lost = lost
        self._placements = placements
        self._lock = anyio.Lock()
        self._sent_ms = 0
        self.id: str | None = None

    async def owner(self) -> str:
        """The owner's id, registered by the first who asks."""
        async with self._lock:
            if self.id is None:
                id = f"own_{os.getpid()}_{secrets.token_hex(8)}"
                sent_ms = self._engine.clock.boot_ms()
                owner = this_process(self._engine.host, id=id, placements=self._placements)
                await self._engine.store.register(owner)
                self.id = id
                self._sent(sent_ms)
            return self.id

    def _sent(self, sent_ms: int) -> None:
        """A renewal that was sent then was good: until when we, and our tools, may go on."""
        self._sent_ms = sent_ms
        self._guard.renew(sent_ms + STOP_AFTER_MS)

    async def keep(self) -> None:
        """Renew until cancelled, and bury those who no longer do."""
        while True:
            left_ms = RENEW_MS if self.id is None else self._left_ms()
            await anyio.sleep(max(0, min(RENEW_MS, left_ms)) / 1_000)
            if self.id is not None:
                await self._renew(self.id)

    def _left_ms(self) -> int:
        """How long until this owner has to stop itself."""
        return self._sent_ms + STOP_AFTER_MS - self._engine.clock.boot_ms()

    async def _renew(self, id: str) -> None:
        sent_ms = self._engine.clock.boot_ms()
        left_ms = self._left_ms()
        # Who comes late, after a pause of the process, may ask once: the store refuses whom it buried.
        wait_ms = min(RENEW_MS, left_ms) if left_ms > 0 else LATE_MS
        try:
            with anyio.fail_after(wait_ms / 1_000):
                await self._engine.store.renew(id)
            self._sent(sent_ms)
            await self._engine.store.bury(id)
        except LeaseLost:
            self._forget()
        except (StoreError, TimeoutError):
            if self._left_ms() <= 0:
                self._forget()

    def _forget(self) -> None:
        self.id = None
        self._lost()

    async def retire(self) -> None:
        """Give everything back."""
        if self.id is not None:
            id, self.id = self.id, None
            await self._engine.store.retire(id)

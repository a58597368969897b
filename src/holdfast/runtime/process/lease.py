"""This process as an owner: registered by its first claim, renewed while it lives, retired when it closes.

What must stay true: an owner that could not renew stops itself before another may bury it. The time since the
last good renewal counts from when it was *sent*, by a clock that counts suspension. A process that registers
again first retires its former owner, so that no other has to wait until that one counts as dead.
"""

import os
import secrets
from collections.abc import Callable

import anyio

from holdfast.errors import LeaseLost, Refused, StoreError
from holdfast.location.guard import Guard
from holdfast.log import event
from holdfast.runtime.engine.engine import Engine
from holdfast.store.host import this_process
from holdfast.store.owner import LEASE_MS, RENEW_MS
from holdfast.tools.plain import described

STOP_AFTER_MS = int(0.8 * LEASE_MS)
LATE_MS = LEASE_MS // 20
AGAIN_MS = RENEW_MS // 10
"""The pause after a renewal that failed."""
MARGIN_MS = 20
"""Renewals are a little more than an interval apart, so that an owner that has renewed once may bury others.
"""


class ProcessLease:
    """The lease of this process. `lost` is called when the store may have given it up."""

    def __init__(
        self, engine: Engine, lost: Callable[[], None], placements: tuple[str, ...], guard: Guard
    ) -> None:
        self._guard = guard
        self._engine = engine
        self._lost = lost
        self._placements = placements
        self._lock = anyio.Lock()
        self._sent_ms = 0
        self._failed = False
        self._former: list[str] = []
        self._registered = anyio.Event()
        self._retired = False
        self.id: str | None = None
        self.ids: set[str] = set()
        """Every owner that this process has been: one, and one more for each lease that it lost."""

    async def owner(self) -> str:
        """The owner's id; the first call registers it. Behind `retire` there is none."""
        async with self._lock:
            if self._retired:
                raise Refused("this process has given back what it had claimed, and claims nothing more")
            await self._retire_former()
            if self.id is None:
                id = f"own_{os.getpid()}_{secrets.token_hex(8)}"
                sent_ms = self._engine.clock.boot_ms()
                owner = this_process(self._engine.host, id=id, placements=self._placements)
                await self._engine.store.register(owner)
                self.id = id
                self.ids.add(id)
                self._sent(sent_ms)
                event.debug("process", "owner.registered", owner=id)
                self._registered.set()
            return self.id

    def _sent(self, sent_ms: int) -> None:
        """A renewal sent at that time succeeded: this process and its tools may go on until its deadline."""
        self._sent_ms, self._failed = sent_ms, False
        self._guard.renew(sent_ms + STOP_AFTER_MS)

    async def keep(self) -> None:
        """Renew until cancelled, and bury owners that no longer renew."""
        while True:
            if self.id is None:
                self._registered = anyio.Event()
                await self._registered.wait()
            await anyio.sleep(max(0, self._pause_ms()) / 1_000)
            if self.id is not None:
                await self._renew(self.id)

    def _pause_ms(self) -> int:
        """How long until the next renewal is due, or this owner has to stop itself."""
        if self._failed:
            return min(AGAIN_MS, self._left_ms())
        return min(self._sent_ms + RENEW_MS + MARGIN_MS - self._engine.clock.boot_ms(), self._left_ms())

    def _left_ms(self) -> int:
        """How long until this owner has to stop itself."""
        return self._sent_ms + STOP_AFTER_MS - self._engine.clock.boot_ms()

    def left_s(self, id: str) -> float:
        """For how long this process may still try to write as that owner; 0 for a former one.

        After a pause of the process the time is up although no other owner may have taken its sessions: until
        the late renewal has decided about that, a call may be repeated, and the store refuses a lost claim.
        """
        return max(LATE_MS, self._left_ms()) / 1_000 if id == self.id else 0.0

    async def _renew(self, id: str) -> None:
        sent_ms = self._engine.clock.boot_ms()
        left_ms = self._left_ms()
        # After a pause of the process, one late renewal is tried: the store refuses an owner that was buried.
        wait_ms = min(RENEW_MS, left_ms) if left_ms > 0 else LATE_MS
        try:
            with anyio.fail_after(wait_ms / 1_000):
                await self._engine.store.renew(id)
            self._sent(sent_ms)
        except LeaseLost:
            self.forget(id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the lease must not run out unnoticed
            self._failed = True
            if not isinstance(error, (StoreError, TimeoutError)):
                self._engine.warn(f"the lease of this process could not be renewed: {described(error)}")
            if self._left_ms() <= 0:
                self.forget(id)
        else:
            await self._bury(id)

    async def _bury(self, id: str) -> None:
        """Bury dead owners; an error must not delay the next renewal."""
        try:
            with anyio.move_on_after(RENEW_MS / 1_000):
                await self._engine.store.bury(id)
        except (StoreError, TimeoutError):
            return
        except Exception as error:  # noqa: BLE001 - the next try may succeed
            self._engine.warn(f"owners that are gone could not be looked for: {described(error)}")

    def forget(self, id: str) -> None:
        """This process is that owner no longer: stop what runs under it."""
        if self.id == id:
            self.id = None
            self._former.append(id)
            self._lost()
            event.warn("process", "lease.lost", owner=id)

    async def retire(self) -> None:
        """Retire the owner: the store releases all its claims."""
        self._retired = True
        async with self._lock:
            if self.id is not None:
                self._former.append(self.id)
                self.id = None
            await self._retire_former()

    async def _retire_former(self) -> None:
        while self._former:
            id = self._former[0]
            await self._engine.store.retire(id)
            self._former.remove(id)  # The lease may have been lost meanwhile, and another id have come.
            event.debug("process", "owner.retired", owner=id)

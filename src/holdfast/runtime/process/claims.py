"""The claims of this process: a session is claimed before it is drained, and given back behind that.

What must stay true: a claim that is not known to be released (the store may have been unreachable when its
drain ended) is given back once the store answers, also if nobody asks for the session again.
"""

import contextlib
from collections.abc import Container

import anyio

from holdfast.errors import LeaseLost, StoreError
from holdfast.log import event
from holdfast.runtime.drain import Drained
from holdfast.runtime.engine.patience import PatientStore
from holdfast.runtime.process.lease import ProcessLease
from holdfast.store.batch import Fence, Held

GIVE_BACK_S = 5.0


class Claims:
    """Claims under the lease of this process. `running` are the sessions that it works on just now."""

    def __init__(self, store: PatientStore, lease: ProcessLease, running: Container[str]) -> None:
        self._store = store
        self._lease = lease
        self._running = running
        self._unreleased: dict[str, Fence] = {}

    async def take(self, session: str) -> Fence | Held:
        """Claim a session; `Held` where another owner runs it."""
        await self.give_back(session)
        claimed = await self._claim(session)
        if isinstance(claimed, Held):
            event.debug("process", "claim.refused", session=session, owner=claimed.owner)
        else:
            event.info("process", "claim.taken", session=session, owner=claimed.owner, claim=claimed.number)
            self._unreleased[session] = claimed
        return claimed

    async def _claim(self, session: str) -> Fence | Held:
        """Claim a session, as the owner that this process is by then."""
        owner, claimed = await self._claim_once(session)
        if claimed is None or self._lease.id != owner:
            # Buried, or given up while the store was waited for: a new owner frees its claims.
            owner, claimed = await self._claim_once(session)
        if claimed is None or self._lease.id != owner:
            raise LeaseLost(f"session {session}: this process loses its lease again and again")
        if isinstance(claimed, Held) and claimed.owner == owner:
            # The store granted the claim and its answer was lost: no other task here runs the session.
            record = await self._store.session(session)
            if record is not None and record.owner == owner:
                return await self._store.renumber(Fence(session, owner, record.claim))
        return claimed

    async def _claim_once(self, session: str) -> tuple[str, Fence | Held | None]:
        """The owner that has asked for the session, and what it got; None if it was buried."""
        owner = await self._store.repeat(self._lease.owner)
        try:
            return owner, await self._store.claim(session, owner)
        except LeaseLost:
            self._lease.forget(owner)
            return owner, None

    def note_end(self, fence: Fence, drained: Drained | None) -> None:
        """Note what became of a claim by its drain; without a `Drained` that is not known."""
        self._unreleased[fence.session] = fence
        if drained is None:
            return
        if drained.how == "abandoned":
            event.warn("process", "claim.lost", session=fence.session)
        elif drained.released:
            event.info("process", "claim.released", session=fence.session, how=drained.how)
        else:
            event.warn("process", "claim.unreleased", session=fence.session, how=drained.how)
            return
        del self._unreleased[fence.session]

    async def give_back(self, session: str) -> None:
        """Release a claim that could not be released when its drain ended."""
        if (fence := self._unreleased.get(session)) is not None:
            await self._release(fence)

    async def keep_given_back(self) -> None:
        """Release, when the store is reachable, the claims that could not be released after their drains."""
        while True:
            await anyio.sleep(GIVE_BACK_S)
            # The fences of now: while one is waited for, a session may be claimed anew, under another.
            for fence in [each for each in self._unreleased.values() if each.session not in self._running]:
                with contextlib.suppress(StoreError):  # Still unreachable: the next try may succeed.
                    await self._release(fence)

    async def _release(self, fence: Fence) -> None:
        with contextlib.suppress(LeaseLost):  # Another owner has the session: the claim is released.
            await self._store.release(fence)
            event.info("process", "claim.released", session=fence.session, how="late")
        if self._unreleased.get(fence.session) is fence:  # Not what was claimed meanwhile.
            del self._unreleased[fence.session]

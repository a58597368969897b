"""The store with retries: it may be unreachable for a moment.

A database restarts, a network drops, another process holds a lock for too long: as long as this process is
sure of its lease, it waits and repeats the call. What must stay true: nothing is written twice. A commit that
was surely not written is repeated; one that may have been written is looked up first.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import ParamSpec, TypeVar

import anyio

from holdfast.errors import LeaseLost, StoreBusy, StoreUnsure
from holdfast.schema.stored import Kind, Mark
from holdfast.store.base import Store, Watch
from holdfast.store.batch import Batch, Copies, Fence, Held, Put, Receipt
from holdfast.store.owner import LEASE_MS, Owner
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import (
    Changes,
    Found,
    JsonPage,
    MadePage,
    MessagePage,
    Resync,
    SessionPage,
    SessionRecord,
    StoredMessage,
    StoredRecord,
)
from holdfast.store.report import Progress, Report

T = TypeVar("T")
P = ParamSpec("P")

PAUSE_S, PAUSE_MAX_S = 0.05, 1.0
WAIT_S = 0.8 * LEASE_MS / 1_000
"""The longest wait for one call. A lease that is renewed meanwhile does not lengthen it."""
UNSURE_MAX = 10
"""How often in a row the answer to one commit may be lost."""


class PatientStore:
    """Fills `Store`. `left_s` is how long this process is sure of its lease; None while it has none."""

    def __init__(self, store: Store, left_s: Callable[[], float | None]) -> None:
        self._store = store
        self._left_s = left_s
        self._tired = False
        """Whether the last wait was in vain: then no call waits again until one has succeeded."""

    async def repeat(self, ask: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs) -> T:
        """Repeat the call until the store answers, or waiting is no longer allowed."""
        until_s: float | None = None
        pause_s = PAUSE_S
        while True:
            try:
                answer = await ask(*arguments, **named)
            except StoreUnsure:
                raise
            except StoreBusy:
                now_s = anyio.current_time()
                until_s = now_s + WAIT_S if until_s is None else until_s
                lease_s = self._left_s()
                left_s = until_s - now_s if lease_s is None else min(until_s - now_s, lease_s)
                if left_s <= 0 or self._tired:
                    self._tired = True
                    raise
                await anyio.sleep(min(pause_s, left_s))
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
            else:
                self._tired = False
                return answer

    async def commit(self, batch: Batch) -> Receipt:
        """Write a batch. Under a fence `StoreUnsure` is raised: only the caller may renumber its fence."""
        for attempt in range(1, UNSURE_MAX + 1):
            try:
                return await self.repeat(self._store.commit, batch)
            except StoreUnsure:
                if batch.fence is not None or attempt == UNSURE_MAX:
                    raise
                if (receipt := await find_receipt(self, batch, after=0)) is not None:
                    return receipt
        raise AssertionError

    async def release(self, fence: Fence, *, settled: bool = False) -> None:
        """Release a claim. If the answer was lost and the claim is gone, it was released."""
        for attempt in range(1, UNSURE_MAX + 1):
            try:
                return await self.repeat(self._store.release, fence, settled=settled)
            except StoreUnsure:
                if attempt == UNSURE_MAX:
                    raise
            except LeaseLost:
                if attempt > 1:
                    return None
                raise
        raise AssertionError

    async def renumber(self, fence: Fence) -> Fence:
        return await self.repeat(self._store.renumber, fence)

    async def claim(self, session: str, owner: str) -> Fence | Held:
        return await self.repeat(self._store.claim, session, owner)

    async def session(self, id: str) -> SessionRecord | None:
        return await self.repeat(self._store.session, id)

    async def sessions(self, query: SessionQuery) -> SessionPage:
        return await self.repeat(self._store.sessions, query)

    async def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None:
        return await self.repeat(self._store.get, session, kind, id)

    async def select(
        self, kind: Kind, *, session: str | None = None, mark: Mark | None = None
    ) -> Sequence[StoredRecord]:
        return await self.repeat(self._store.select, kind, session=session, mark=mark)

    async def holders(self, kind: Kind, id: str) -> Sequence[str]:
        return await self.repeat(self._store.holders, kind, id)

    async def messages(self, query: MessageQuery) -> MessagePage:
        return await self.repeat(self._store.messages, query)

    async def messages_json(self, query: MessageQuery) -> JsonPage:
        return await self.repeat(self._store.messages_json, query)

    async def messages_made(self, query: MessageQuery, make: Callable[[bytes], T]) -> MadePage[T]:
        return await self.repeat(self._store.messages_made, query, make)

    async def originals(self, session: str, below: int | None = None) -> Sequence[StoredMessage]:
        return await self.repeat(self._store.originals, session, below)

    async def head(self) -> str:
        return await self.repeat(self._store.head)

    async def changes(
        self, cursor: str | None, session: str | None = None, *, limit: int = 1000, recent: bool = False
    ) -> Changes | Resync:
        return await self.repeat(self._store.changes, cursor, session, limit=limit, recent=recent)

    async def search(self, query: SearchQuery) -> Found:
        return await self.repeat(self._store.search, query)

    def watch(self) -> Watch:
        return self._store.watch()

    async def erase(
        self, session: str, *, fence: Fence | None = None, idle_since_ms: int | None = None
    ) -> Sequence[str]:
        return await self._store.erase(session, fence=fence, idle_since_ms=idle_since_ms)

    async def register(self, owner: Owner) -> None:
        await self._store.register(owner)

    async def renew(self, owner: str) -> None:
        await self._store.renew(owner)

    async def retire(self, owner: str) -> None:
        await self._store.retire(owner)

    async def bury(self, owner: str) -> Sequence[str]:
        return await self._store.bury(owner)

    async def sweep(self) -> None:
        await self._store.sweep()

    async def examine(self, *, repair: bool = False, progress: Progress | None = None) -> Report:
        return await self._store.examine(repair=repair, progress=progress)

    async def backup(self, path: str) -> None:
        await self._store.backup(path)

    async def close(self) -> None:
        await self._store.close()


async def find_receipt(store: Store, batch: Batch, *, after: int) -> Receipt | None:
    """The receipt of a batch whose answer was lost; None if it was not written.

    A batch is all or nothing, so one of its records is proof: it was written if the record has that content
    and a number above `after`, the last number that the writer knew; and not if the record is missing. A
    message that only gets its place proves nothing, since its admission wrote the same content. A batch that
    only removes counts as written when none of its records is left.
    """
    numbers, proof, left = [], False, False
    for change in batch.changes:
        kind, id = change.last() if isinstance(change, Copies) else (change.kind, change.id)
        record = await store.get(change.session, kind, id)
        numbers.append(0 if record is None else record.seq)
        if isinstance(change, Copies):
            if record is None:
                return None
            left = proof = True  # Its ids were made for it.
        elif isinstance(change, Put):
            if record is None:
                return None
            left = True
            is_ours = record.data == change.data and record.seq > after and not change.placed
            proof = proof or is_ours
        left = left or record is not None
    return Receipt(tuple(numbers)) if proof or (batch.changes and not left) else None

"""Watches the store for replies and interrupts that concern the sessions of this process.

They are records, written by this process or another, so they outlive their writer. One watcher a process
reads the store when something may have changed. What must stay true: no task waits for a reply that is
already stored, and a lost wake delays it at most until the store's own poll.
"""

import contextlib
from collections.abc import Callable

import anyio

from holdfast.clock import Clock
from holdfast.errors import StoreError
from holdfast.runtime.engine import interrupt_requests
from holdfast.schema.request import PermissionRequest, QuestionRequest
from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.batch import Fence

PAUSE_S = 0.05


class RequestWatcher:
    """The replies and interrupts that this process waits for."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[tuple[str, str], anyio.Event] = {}
        self._running: dict[str, tuple[Fence, Callable[[int], None]]] = {}
        self._news = anyio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        watch = self._store.watch()
        try:
            while True:
                if not self._waiting and not self._running:
                    await self._news.wait()
                self._news = anyio.Event()
                with contextlib.suppress(
                    StoreError
                ):  # Busy or unreachable for a moment: the next look may succeed.
                    await self._look()
                await anyio.sleep(PAUSE_S)  # A turn writes often, and a reply of the user can wait this long.
                await watch.wait()
        finally:
            watch.close()

    async def _look(self) -> None:
        """One question to the store, however many sessions run or wait here."""
        left = await self._store.select("request", mark=Mark.OPEN)
        numbers = {(record.session, record.id): record.seq for record in left}
        for key, event in tuple(self._waiting.items()):
            if key not in numbers:
                event.set()
        for session, (fence, interrupt) in tuple(self._running.items()):
            for each in interrupt_requests.among(left, session):
                if each.owner not in (None, fence.owner):
                    continue
                if each.claim is None or each.claim >= fence.number:
                    interrupt(numbers[session, each.id])
                else:  # The run that it meant has ended: its caller need not wait.
                    await interrupt_requests.withdraw(self._store, each, self._clock.now_ms())

    async def _is_open(self, session: str, id: str) -> bool:
        record = await self._store.get(session, "request", id)
        return record is not None and record.mark is Mark.OPEN

    async def answered(
        self, session: str, id: str, *, wait_s: float
    ) -> PermissionRequest | QuestionRequest | None:
        """Wait until the request is answered; None if it is not in time, or was removed."""
        event = self._waiting.setdefault((session, id), anyio.Event())
        self._news.set()
        try:
            if await self._is_open(session, id):  # It may have been answered before this wait began.
                with anyio.move_on_after(wait_s):
                    await event.wait()
        finally:
            self._waiting.pop((session, id), None)
        record = await self._store.get(session, "request", id)
        value = None if record is None else record.value()
        if isinstance(value, PermissionRequest | QuestionRequest) and value.time.answered is not None:
            return value
        return None

    def look(self, session: str, id: str) -> None:
        """This process has just answered the request: end the wait for it at once."""
        if (event := self._waiting.get((session, id))) is not None:
            event.set()

    def runs(self, fence: Fence, interrupt: Callable[[int], None]) -> None:
        """This process runs the session under this claim; `interrupt` is called, with the number of the
        request, when it has to stop.

        Not for an interrupt that names another owner or an earlier claim: it meant work that has ended. An
        interrupt that named this process before it lost its lease does not count either, since it is another
        owner now. A claim that is renumbered gets a higher number, so the number at the beginning of the run
        decides.
        """
        self._running[fence.session] = fence, interrupt
        self._news.set()

    def stopped(self, session: str) -> None:
        """This process no longer runs the session."""
        self._running.pop(session, None)

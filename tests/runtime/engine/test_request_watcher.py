"""Watching for replies and interrupts, over a store that counts what it is asked."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from holdfast.clock import SystemClock
from holdfast.runtime.engine import request_watcher
from holdfast.runtime.engine.request_watcher import RequestWatcher
from holdfast.schema.stored import Mark
from holdfast.store.batch import Fence
from holdfast.store.record import StoredRecord
from tests.until import until

SESSIONS = 40


def request(number: int, mark: Mark = Mark.OPEN) -> StoredRecord:
    """The record of a request; what it says is not looked at."""
    return StoredRecord(f"ses_{number}", "request", f"per_{number}", None, 1, 1, 1, mark, b"{}")


class CountingStore:
    """Requests that are open until they are answered; whoever watches is woken all the time."""

    def __init__(self) -> None:
        self.records = {f"ses_{number}": request(number) for number in range(SESSIONS)}
        self.looks = self.asked = 0

    async def select(
        self, kind: str, *, session: str | None = None, mark: Mark | None = None
    ) -> Sequence[StoredRecord]:
        """Those that are open, of a session or of all."""
        self.asked += 1
        found = [each for each in self.records.values() if each.mark is mark]
        return [each for each in found if session in (None, each.session)]

    async def get(self, session: str, kind: str, id: str) -> StoredRecord | None:
        """One of them."""
        self.asked += 1
        return self.records[session]

    def watch(self) -> Any:
        """A watch that wakes at once."""
        return self

    async def wait(self) -> None:
        """Something may have changed."""
        self.looks += 1
        await anyio.sleep(0)

    def close(self) -> None:
        """Nothing is held."""


async def test_a_look_is_one_question_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty requests wait, of forty sessions that run: each look asks the store once."""
    monkeypatch.setattr(request_watcher, "PAUSE_S", 0.001)
    store: Any = CountingStore()
    watcher = RequestWatcher(store, SystemClock())
    async with anyio.create_task_group() as group:
        for number in range(SESSIONS):
            watcher.runs(Fence(f"ses_{number}", "own_1", 1), lambda _: None)

            async def wait(number: int = number) -> None:
                await watcher.answered(f"ses_{number}", f"per_{number}", wait_s=60)

            group.start_soon(wait)
        await until(lambda: store.asked == SESSIONS)  # Each looks once whether it was answered before.
        group.start_soon(watcher.run)
        await until(lambda: store.looks >= 5)
        assert store.asked - SESSIONS <= store.looks + 1
        group.cancel_scope.cancel()

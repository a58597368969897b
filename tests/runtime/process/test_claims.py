"""Claims that outlive their drains: which of them are given back, and when."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreBusy
from holdfast.runtime.engine import patience
from holdfast.runtime.engine.patience import PatientStore
from holdfast.runtime.process import claims
from holdfast.runtime.process.claims import Claims
from holdfast.store.batch import Batch, Fence
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, S2, session
from tests.until import until


class Lease:
    """The lease of a process that never loses it."""

    id = "o1"

    async def owner(self) -> str:
        return "o1"


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr(patience, "PAUSE_S", 0.001)
    monkeypatch.setattr(claims, "GIVE_BACK_S", 0.001)
    store = await SqliteStore.open(tmp_path / "s.db", clock=SystemClock(), host=FakeHost())
    await store.commit(Batch((session(S1), session(S2))))
    await store.register(FakeHost().owner("o1"))
    yield store
    await store.close()


def made(store: SqliteStore, running: set[str]) -> Claims:
    lease: Any = Lease()
    return Claims(PatientStore(store, lambda: 10.0), lease, running)


async def holder(store: SqliteStore, id: str) -> str | None:
    record = await store.session(id)
    assert record is not None
    return record.owner


async def test_the_claim_of_a_session_that_runs_stays(store: SqliteStore) -> None:
    """The one beside it, whose drain has ended without a release, is given back."""
    kept = made(store, {S1})
    for id in (S1, S2):
        assert isinstance(await kept.take(id), Fence)

    async with anyio.create_task_group() as group:
        group.start_soon(kept.keep_given_back)
        await until(lambda: holds_none(store, S2))
        await anyio.sleep(0.05)  # Some more rounds.
        group.cancel_scope.cancel()

    assert await holder(store, S1) == "o1"


async def test_a_claim_that_is_taken_while_another_is_given_back_stays(store: SqliteStore) -> None:
    """Both could not be released after their drains. The store comes back, and the second session is claimed
    anew while the release of the first is still being repeated.
    """
    running, came_back, asked = set[str](), anyio.Event(), anyio.Event()
    kept = made(store, running)
    for id in (S1, S2):
        await kept.take(id)
    plain = store.release

    async def release(fence: Fence, *, settled: bool = False) -> None:
        if fence.session == S1:
            asked.set()
            if not came_back.is_set():
                raise StoreBusy("away")
        await plain(fence, settled=settled)

    store.release = release  # type: ignore[method-assign]
    async with anyio.create_task_group() as group:
        group.start_soon(kept.keep_given_back)
        with anyio.fail_after(60):
            await asked.wait()
        running.add(S2)
        fence = await kept.take(S2)
        came_back.set()
        await until(lambda: holds_none(store, S1))
        await anyio.sleep(0.05)  # Some more rounds.
        group.cancel_scope.cancel()

    assert isinstance(fence, Fence)
    assert await holder(store, S2) == "o1"


async def holds_none(store: SqliteStore, id: str) -> bool:
    return await holder(store, id) is None


async def test_a_session_is_claimed_as_the_owner_that_this_process_is_by_then(store: SqliteStore) -> None:
    """The store was waited for so long that the lease was given up: under it nothing would be renewed."""
    await store.register(FakeHost().owner("o2"))

    class Losing(Lease):
        async def owner(self) -> str:
            if self.id == "o2":
                await store.retire("o1")  # As the next owner does, which frees its claims.
            return self.id

    lease: Any = Losing()
    patient = PatientStore(store, lambda: 10.0)
    claim = patient.claim

    async def late(session: str, owner: str) -> Any:
        claimed = await claim(session, owner)
        lease.id = "o2"
        return claimed

    patient.claim = late  # type: ignore[method-assign]
    taken = await Claims(patient, lease, set()).take(S1)

    assert isinstance(taken, Fence)
    assert (taken.owner, await holder(store, S1)) == ("o2", "o2")

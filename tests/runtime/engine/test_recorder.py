"""The pen of a run: what is begun to be written is waited for, and what is held is not lost."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreBusy
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema.ids import Mint
from holdfast.store.batch import Batch, Receipt
from holdfast.store.query import MessageQuery
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session, user
from holdfast.testing.store_contract.world import granted


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store with one session, and an owner."""
    store = await SqliteStore.open(tmp_path / "s.db", clock=SystemClock(), host=FakeHost())
    await store.commit(Batch((session(),)))
    await store.register(FakeHost().owner("o1"))
    yield store
    await store.close()


async def pen(store: SqliteStore) -> Recorder:
    return Recorder(store, granted(await store.claim(S1, "o1")), SystemClock(), Mint(SystemClock()))


async def written(store: SqliteStore) -> list[str]:
    return [each.info.id for each in (await store.messages(MessageQuery(S1))).messages]


async def test_a_write_is_waited_for_though_its_writer_is_cancelled(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it could land behind the settling of what it wrote."""
    recorder, plain = await pen(store), store.commit
    begun, gate, told = anyio.Event(), anyio.Event(), list[str]()

    async def slow(batch: Batch) -> Receipt:
        begun.set()
        await gate.wait()
        receipt = await plain(batch)
        told.append("written")
        return receipt

    async def write() -> None:
        with scope:
            await recorder.commit(user(1))
        told.append("left")

    monkeypatch.setattr(store, "commit", slow)
    scope = anyio.CancelScope()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await begun.wait()
            scope.cancel()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            gate.set()

    assert told == ["written", "left"]
    assert await written(store) == [user(1).id]


async def test_what_is_held_survives_a_write_that_fails(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes with the next one, before it, together with what was held since."""
    recorder, plain = await pen(store), store.commit
    recorder.hold(user(1))

    async def away(batch: Batch) -> Receipt:
        recorder.hold(user(2))
        raise StoreBusy("away")

    monkeypatch.setattr(store, "commit", away)
    with pytest.raises(StoreBusy):
        await recorder.commit(user(3))
    monkeypatch.setattr(store, "commit", plain)
    await recorder.commit(user(4))

    assert await written(store) == [user(1).id, user(2).id, user(4).id]

"""The pen of a run: what is begun to be written is waited for, and what is held is not lost."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.errors import StoreBusy, StoreUnsure
from holdfast.runtime.engine import recorder as module
from holdfast.runtime.engine.recorder import Deferred, Ids, Made, Recorder
from holdfast.schema import stored
from holdfast.schema.ids import Mint
from holdfast.schema.message import MessageWithParts
from holdfast.store.batch import Batch, Put, Receipt
from holdfast.store.query import MessageQuery
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session, text, user
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
    with anyio.fail_after(60):
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


def value_of(change: Put) -> Any:
    return stored.load(change.kind, change.data, id=change.id, session=S1, parent=change.parent)


def end_of(recorder: Recorder, *changes: Put) -> Deferred:
    """The end of an answer, which writes these changes."""

    async def write(also: Made, release: bool) -> None:
        await recorder.write(lambda ids: [*changes, *also(ids)], release=release)

    return Deferred(MessageWithParts(value_of(user(1)), ()), write)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No deferred end is written by itself."""
    monkeypatch.setattr(module, "_DEFER_S", 60.0)


@pytest.mark.usefixtures("patient")
async def test_a_deferred_end_is_one_commit_with_what_follows(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the boundary is given it; after that there is none."""
    recorder, batches = await pen(store), noted(store, monkeypatch)
    recorder.defer(end_of(recorder, user(1)))
    assert await recorder.deferred_end() is not None
    assert batches == []

    assert await recorder.write_deferred(lambda _: [user(2)])

    assert [[change.id for change in batch.changes] for batch in batches] == [[user(1).id, user(2).id]]
    assert await recorder.deferred_end() is None
    assert not await recorder.write_deferred()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("how", ["commit", "message", "parts", "write", "flush"])
async def test_any_other_write_comes_after_the_deferred_end(store: SqliteStore, how: str) -> None:
    """Its ids too, or the store would refuse it."""
    recorder = await pen(store)
    await recorder.commit(user(1))

    def later(ids: Ids) -> list[Put]:
        return [replace(user(9), id=ids.message())]

    async def write(also: Made, release: bool) -> None:
        await recorder.write(lambda ids: [*later(ids), *also(ids)])

    recorder.defer(Deferred(MessageWithParts(value_of(user(1)), ()), write))
    match how:
        case "commit":
            await recorder.commit(user(1, agent="plan"))
        case "message":
            await recorder.add_message(lambda id: replace(value_of(user(1)), id=id))
        case "parts":
            await recorder.add_parts(lambda id: replace(value_of(text(1, 1)), id=id))
        case "write":
            await recorder.write(later)
        case _:
            await recorder.flush()

    assert await recorder.deferred_end() is None
    ids = await written(store)
    assert ids == sorted(ids)
    assert len(ids) == (3 if how in ("message", "write") else 2)


async def test_a_deferred_end_that_nothing_follows_is_written_alone(store: SqliteStore) -> None:
    """A boundary may take long: what the answer used is stored meanwhile."""
    recorder = await pen(store)
    recorder.defer(end_of(recorder, user(1)))
    watch = store.watch()
    with anyio.fail_after(60):
        while not await written(store):
            await watch.wait()
    watch.close()

    assert await recorder.deferred_end() is None
    assert await written(store) == [user(1).id]


async def test_a_deferred_end_that_cannot_be_written_alone_is_left_to_the_next_write(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was raised: nobody waits for the task that tried, and the error comes up again there."""
    recorder, plain, tried = await pen(store), store.commit, anyio.Event()

    async def broken(batch: Batch) -> Receipt:
        tried.set()
        raise ZeroDivisionError

    monkeypatch.setattr(store, "commit", broken)
    recorder.defer(end_of(recorder, user(1)))
    with anyio.fail_after(60):
        await tried.wait()
    assert await recorder.deferred_end() is not None
    with pytest.raises(ZeroDivisionError):
        await recorder.commit(user(2))
    monkeypatch.setattr(store, "commit", plain)
    await recorder.commit(user(3))

    assert await written(store) == [user(1).id, user(3).id]


@pytest.mark.usefixtures("patient")
async def test_a_deferred_end_that_fails_is_tried_again_by_the_next_write(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes before it, and it is written once."""
    recorder, plain = await pen(store), store.commit

    async def away(batch: Batch) -> Receipt:
        raise StoreBusy("away")

    recorder.defer(end_of(recorder, user(1)))
    monkeypatch.setattr(store, "commit", away)
    with pytest.raises(StoreBusy):
        await recorder.write_deferred(lambda _: [user(2)])
    monkeypatch.setattr(store, "commit", plain)
    await recorder.commit(user(3))

    assert await written(store) == [user(1).id, user(3).id]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("was_written", [True, False])
async def test_a_release_whose_answer_was_lost(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, was_written: bool
) -> None:
    """If it was written, the claim is gone with it, and that is no loss of the claim; else it is repeated."""
    recorder, plain = await pen(store), store.commit
    lost = [StoreUnsure("no answer")]

    async def unsure(batch: Batch) -> Receipt:
        if not lost:
            return await plain(batch)
        if was_written:
            await plain(batch)
        raise lost.pop()

    recorder.defer(end_of(recorder, user(1)))
    monkeypatch.setattr(store, "commit", unsure)
    assert await recorder.write_deferred(release=True)

    record = await store.session(S1)
    assert record is not None
    assert not record.busy
    assert await written(store) == [user(1).id]


def noted(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """Every batch from now on."""
    plain, batches = store.commit, list[Batch]()

    async def commit(batch: Batch) -> Receipt:
        batches.append(batch)
        return await plain(batch)

    monkeypatch.setattr(store, "commit", commit)
    return batches

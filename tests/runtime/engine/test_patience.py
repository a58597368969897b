"""A store that is away for a moment, seen by a running session."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.errors import LeaseLost, StoreBusy, StoreUnsure
from holdfast.runtime.engine import patience
from holdfast.runtime.engine.patience import PatientStore
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema.ids import Mint
from holdfast.store.batch import Batch, Fence
from holdfast.store.query import MessageQuery
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session, user
from holdfast.testing.store_contract.world import granted


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a pause."""
    monkeypatch.setattr(patience, "PAUSE_S", 0.0)


@pytest.fixture
async def store(tmp_path: Path) -> Any:
    store = await SqliteStore.open(tmp_path / "s.db", clock=SystemClock(), host=FakeHost())
    await store.commit(Batch((session(),)))
    yield store
    await store.close()


def failing(store: Any, verb: str, *errors: Exception, after: bool = False) -> list[int]:
    """Let a verb fail once with each error, before it does anything or after; how often it was asked."""
    plain, left, asked = getattr(store, verb), list(errors), [0]

    async def call(*arguments: Any, **named: Any) -> Any:
        asked[0] += 1
        if not left:
            return await plain(*arguments, **named)
        if after:
            await plain(*arguments, **named)
        raise left.pop(0)

    setattr(store, verb, call)
    return asked


def forever() -> float | None:
    return 10.0


async def texts(store: SqliteStore) -> list[str]:
    return [each.info.id for each in (await store.messages(MessageQuery(S1))).messages]


async def test_what_was_not_done_is_asked_again(store: SqliteStore) -> None:
    """A read and a commit that meet a store that is away three times are answered all the same."""
    away = [StoreBusy("away")] * 3
    asked = failing(store, "session", *away), failing(store, "commit", *away)
    patient = PatientStore(store, forever)

    assert (await patient.session(S1)) is not None
    await patient.commit(Batch((user(1),)))

    assert asked == ([4], [4])
    assert await texts(store) == [user(1).id]


async def test_nobody_waits_longer_than_the_lease(store: SqliteStore) -> None:
    """When it is over the error is the caller's; until a call has succeeded no other one waits."""
    left = [5.0, 5.0, 0.0]
    asked = failing(store, "session", *[StoreBusy("away")] * 5)
    patient = PatientStore(store, lambda: left.pop(0) if left else 5.0)

    for expected in (3, 4, 5):
        with pytest.raises(StoreBusy):
            await patient.session(S1)
        assert asked == [expected]
    assert (await patient.session(S1)) is not None


async def test_a_message_that_another_process_wrote_does_not_prove_that_a_promotion_was_written(
    store: SqliteStore,
) -> None:
    """It has the content that the promotion writes again, under a number that the runner did not know."""
    await store.register(FakeHost().owner("o1"))
    fence = granted(await store.claim(S1, "o1"))
    recorder = Recorder(PatientStore(store, forever), fence, SystemClock(), Mint(SystemClock()))
    await store.commit(Batch((user(1),)))
    failing(store, "commit", StoreUnsure("lost"))

    await recorder.commit(replace(user(1), placed=True), user(2))

    assert await texts(store) == [user(1).id, user(2).id]


@pytest.mark.parametrize("after", [False, True])
async def test_a_commit_in_doubt_is_written_once(store: SqliteStore, *, after: bool) -> None:
    """Whether the lost answer was a yes or a no: the record is there once; the fence has another number."""
    await store.register(FakeHost().owner("o1"))
    fence = granted(await store.claim(S1, "o1"))
    recorder = Recorder(PatientStore(store, forever), fence, SystemClock(), Mint(SystemClock()))
    failing(store, "commit", StoreUnsure("lost"), after=after)

    receipt = await recorder.commit(user(1))

    record = await store.get(S1, "message", user(1).id)
    assert record is not None
    assert receipt.numbers == (record.seq,)
    assert recorder.fence == Fence(S1, "o1", fence.number + 1)
    with pytest.raises(LeaseLost):  # What was still on its way under the old number comes too late.
        await store.commit(Batch((user(2),), (), fence))
    await recorder.commit(user(3))
    assert await texts(store) == [user(1).id, user(3).id]


async def test_a_commit_in_doubt_without_the_claim_is_not_repeated(store: SqliteStore) -> None:
    """Another owner has the session by now: nothing is written."""
    await store.register(FakeHost().owner("o1"))
    fence = granted(await store.claim(S1, "o1"))
    recorder = Recorder(PatientStore(store, forever), fence, SystemClock(), Mint(SystemClock()))
    failing(store, "commit", StoreUnsure("lost"))
    await store.retire("o1")

    with pytest.raises(LeaseLost):
        await recorder.commit(user(1))
    assert await texts(store) == []


async def test_a_release_of_what_is_not_held_is_an_error(store: SqliteStore) -> None:
    """Nothing was in doubt: another has the claim, and who thinks to have it must know."""
    await store.register(FakeHost().owner("o1"))
    fence = granted(await store.claim(S1, "o1"))
    await store.retire("o1")

    with pytest.raises(LeaseLost):
        await PatientStore(store, forever).release(fence)


@pytest.mark.parametrize("after", [False, True])
async def test_a_release_in_doubt_ends_released(store: SqliteStore, *, after: bool) -> None:
    """It is repeated; that the claim is gone then is its success."""
    await store.register(FakeHost().owner("o1"))
    fence = granted(await store.claim(S1, "o1"))
    failing(store, "release", StoreUnsure("lost"), after=after)

    await PatientStore(store, forever).release(fence)

    record = await store.session(S1)
    assert record is not None
    assert record.owner is None


async def test_doubt_has_an_end(store: SqliteStore) -> None:
    """A store whose answers are always lost is given up by name, not asked for ever."""
    asked = failing(store, "commit", *[StoreUnsure("lost")] * 20)
    with anyio.fail_after(60), pytest.raises(StoreUnsure):
        await PatientStore(store, forever).commit(Batch((user(1),)))
    assert asked == [patience.UNSURE_MAX]

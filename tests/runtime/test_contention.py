"""Others at the same session: prompts that come faster than ids are made, owners that are late."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import Conflict
from holdfast.runtime.engine import recorder as recording
from holdfast.runtime.engine.recorder import Ids, Recorder
from holdfast.schema import ids
from holdfast.schema.ids import Mint
from holdfast.schema.message import UserMessage
from holdfast.schema.wire import decode
from holdfast.store.batch import Batch, Change, Put, Unchanged
from holdfast.store.put import put
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session, user
from holdfast.testing.store_contract.world import granted


async def test_a_runner_makes_ids_however_many_prompts_come_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty admissions in a row overtake it, as many as an inbox holds: its message is written then."""
    monkeypatch.setattr(recording, "_PAUSE_S", 0.0)
    store = await SqliteStore.open(tmp_path / "s.db", clock=SystemClock(), host=FakeHost())
    await store.commit(Batch((session(),)))
    await store.register(FakeHost().owner("o1"))
    fence = granted(await store.claim(S1, "o1"))
    mint = Mint(SystemClock())
    plain, left = store.commit, [60]

    async def overtaken(batch: Batch) -> Any:
        if left[0]:
            left[0] -= 1
            found = await store.session(S1)
            assert found is not None
            own = max((each.id for each in batch.changes), default="")
            above = mint.above("msg", max(found.top, ids.body(own)))
            await plain(Batch((Put(S1, "message", above, user(1).data),)))
        return await plain(batch)

    store.commit = overtaken  # type: ignore[method-assign]
    recorder = Recorder(store, fence, SystemClock(), mint)
    made = await recorder.add_message(
        lambda id: decode(UserMessage, _message(id)),
    )

    assert left == [0]
    assert await store.get(S1, "message", made.id) is not None
    await store.close()


async def test_an_id_of_another_process_may_lie_among_those_of_one_commit(tmp_path: Path) -> None:
    """Both were at work in one millisecond: the runner's are made anew, all of them above that one."""
    store = await SqliteStore.open(tmp_path / "s.db", clock=SystemClock(), host=FakeHost())
    await store.commit(Batch((session(),)))
    await store.register(FakeHost().owner("o1"))
    mint = Mint(SystemClock())
    recorder = Recorder(store, granted(await store.claim(S1, "o1")), SystemClock(), mint)
    await recorder.add_message(lambda id: decode(UserMessage, _message(id)))
    made: list[list[str]] = []

    def compose(fresh: Ids) -> Sequence[Change]:
        made.append([fresh.message()])
        if len(made) == 1:
            between.append(mint.ascending("msg"))
        made[-1].append(fresh.message())
        return [put(decode(UserMessage, _message(id))) for id in made[-1]]

    plain, between = store.commit, list[str]()

    async def overtaken(batch: Batch) -> Any:
        if between:
            await plain(Batch((Put(S1, "message", between.pop(), user(1).data),)))
        return await plain(batch)

    store.commit = overtaken  # type: ignore[method-assign]
    await recorder.write(compose)
    record = await store.session(S1)

    assert [len(each) for each in made] == [2, 2]
    assert min(ids.body(id) for id in made[1]) > max(ids.body(id) for id in made[0])
    assert record is not None
    assert record.top == ids.body(made[1][1])
    await store.close()


async def test_a_conflict_of_another_kind_is_not_tried_again(tmp_path: Path) -> None:
    """Nobody has made an id since the last one of ours."""
    store = await SqliteStore.open(tmp_path / "s.db", clock=SystemClock(), host=FakeHost())
    await store.commit(Batch((session(),)))
    await store.register(FakeHost().owner("o1"))
    recorder = Recorder(
        store, granted(await store.claim(S1, "o1")), SystemClock(), mint := Mint(SystemClock())
    )
    first = await recorder.add_message(lambda id: decode(UserMessage, _message(id)))
    tries = 0

    def compose(fresh: Ids) -> Sequence[Change]:
        nonlocal tries
        tries += 1
        return (put(decode(UserMessage, _message(fresh.message()))),)

    with pytest.raises(Conflict, match=f"message {first.id} changed meanwhile"):
        await recorder.write(compose, expect=(Unchanged(S1, "message", first.id, 0),))
    assert (tries, mint.ascending("msg") > first.id) == (1, True)
    await store.close()


def _message(id: str) -> bytes:
    return (
        b'{"role":"user","id":"%b","sessionID":"%b","time":{"created":1},"agent":"build",'
        b'"model":{"providerID":"p","modelID":"m"}}' % (id.encode(), S1.encode())
    )

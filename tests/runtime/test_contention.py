"""Others at the same session: prompts that come faster than ids are made, owners that are late."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.runtime.engine import recorder as recording
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema import ids
from holdfast.schema.ids import Mint
from holdfast.schema.message import UserMessage
from holdfast.schema.wire import decode
from holdfast.store.batch import Batch, Put
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


def _message(id: str) -> bytes:
    return (
        b'{"role":"user","id":"%b","sessionID":"%b","time":{"created":1},"agent":"build",'
        b'"model":{"providerID":"p","modelID":"m"}}' % (id.encode(), S1.encode())
    )

"""What tests of interrupts share."""

from collections.abc import Callable

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.schema.ids import SessionID
from holdfast.schema.request import InterruptRequest, RequestTime
from holdfast.store.batch import Batch
from holdfast.store.put import put
from tests.stories import inside


async def ordered(
    hf: Holdfast, session: str, owner: str | None = None, claim: int | None = None
) -> InterruptRequest:
    """An interrupt that another process has written."""
    request = InterruptRequest(
        id=hf.mint.ascending("per"),
        session_id=SessionID(session),
        owner=owner,
        claim=claim,
        time=RequestTime(created=hf.clock.now_ms()),
    )
    await hf.store.commit(Batch((put(request),)))
    return request


def hold_watcher(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch, *, seen: Callable[[], None] = lambda: None
) -> anyio.Event:
    """See what others ask for only when the event is set; `seen` is called behind each look."""
    gate, watcher = anyio.Event(), inside.coordinator(hf).watcher
    look = watcher._look

    async def late() -> None:
        await gate.wait()
        await look()
        seen()

    monkeypatch.setattr(watcher, "_look", late)
    return gate

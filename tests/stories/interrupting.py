"""What tests of interrupts share."""

from holdfast.app import Holdfast
from holdfast.schema.ids import SessionID
from holdfast.schema.request import InterruptRequest, RequestTime
from holdfast.store.batch import Batch
from holdfast.store.put import put


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

"""Interrupts requested by another process: records, answered by the process that runs the session."""

from collections.abc import Collection, Sequence
from typing import Final

import anyio
from msgspec.structs import replace

from holdfast.errors import RecordCorrupt, Refused
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema.ids import SessionID
from holdfast.schema.request import InterruptRequest, RequestTime
from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.batch import Batch
from holdfast.store.put import put
from holdfast.store.record import SessionRecord, StoredRecord

INTERRUPT_S: Final = 10.0
"""How long an interrupt waits for a session that another process runs."""


async def stop_elsewhere(engine: Engine, running: SessionRecord, reason: str | None) -> None:
    """Stop a session that another owner runs, and wait until it is released, or raise `Refused`."""
    store, session, owner = engine.store, running.id, running.owner
    request = InterruptRequest(
        id=engine.mint.ascending("per"),
        session_id=SessionID(session),
        reason=reason,
        owner=owner,
        claim=running.claim,
        time=RequestTime(created=engine.clock.now_ms()),
    )
    await store.commit(Batch((put(request),)))
    watch = store.watch()
    try:
        with anyio.move_on_after(INTERRUPT_S):
            while (record := await store.session(session)) is not None and record.owner == owner:
                # The same owner may run the session again by now, under another claim.
                if record.claim != running.claim and await is_answered(store, request):
                    break
                await watch.wait()
    finally:
        watch.close()
    # No owner may act on an interrupt after its caller was refused.
    withdrawn = await withdraw(store, request, engine.clock.now_ms())
    record = await store.session(session)
    # An answered interrupt has stopped its run, whichever owner has the session since.
    if not withdrawn or record is None or record.owner is None:
        return
    if record.owner != owner:
        raise Refused(f"session {session}: the run that was to stop has ended, and another owner runs it now")
    raise Refused(f"session {session} runs in another process, which did not stop within {INTERRUPT_S:.0f} s")


async def waiting(store: Store, session: str) -> list[InterruptRequest]:
    """The session's interrupts that are not answered yet."""
    return among(await store.select("request", session=session, mark=Mark.OPEN), session)


def among(records: Sequence[StoredRecord], session: str) -> list[InterruptRequest]:
    """The interrupts of a session among open requests. Those of other sessions are not decoded."""
    own = [_value(record) for record in records if record.session == session]
    return [value for value in own if isinstance(value, InterruptRequest)]


def _value(record: StoredRecord) -> object:
    """The record's value; None if it cannot be read: one bad record must not end every drain."""
    try:
        return record.value()
    except RecordCorrupt:
        return None


async def answer(store: Store, recorder: Recorder, only: Collection[str] | None = None) -> None:
    """Mark the waiting interrupts as answered; only those in `only`, if given."""
    now_ms = recorder.clock.now_ms()
    puts = [
        put(_answered(value, now_ms))
        for value in await waiting(store, recorder.session)
        if only is None or value.id in only
    ]
    if puts:
        await recorder.commit(*puts)


async def withdraw(store: Store, request: InterruptRequest, now_ms: int) -> bool:
    """Close an interrupt that its caller no longer waits for; False when it was answered before."""
    if await is_answered(store, request):
        return False
    await store.commit(Batch((put(_answered(request, now_ms)),)))
    return True


async def is_answered(store: Store, request: InterruptRequest) -> bool:
    """Whether the run it meant was stopped or had ended, or the session is gone."""
    record = await store.get(request.session_id, "request", request.id)
    return record is None or record.mark is not Mark.OPEN


def _answered(request: InterruptRequest, now_ms: int) -> InterruptRequest:
    return replace(request, time=replace(request.time, answered=now_ms))

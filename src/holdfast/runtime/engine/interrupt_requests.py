"""Interrupts that were asked for from another process: records, answered by whoever runs the session."""

from collections.abc import Collection

from msgspec.structs import replace

from holdfast.errors import RecordCorrupt
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema.request import InterruptRequest
from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.batch import Batch
from holdfast.store.put import put
from holdfast.store.record import StoredRecord


async def waiting(store: Store, session: str) -> list[InterruptRequest]:
    """Those that nobody has answered yet."""
    records = await store.select("request", session=session, mark=Mark.OPEN)
    return [value for record in records if isinstance(value := _value(record), InterruptRequest)]


def _value(record: StoredRecord) -> object:
    """The record, or nothing when it cannot be read: one bad record must not end every drain."""
    try:
        return record.value()
    except RecordCorrupt:
        return None


async def answer(store: Store, recorder: Recorder, only: Collection[str] | None = None) -> None:
    """Mark those that wait as answered, or only these of them."""
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
    """Whether the run that it meant was stopped, or had ended; or the session is gone."""
    record = await store.get(request.session_id, "request", request.id)
    return record is None or record.mark is not Mark.OPEN


def _answered(request: InterruptRequest, now_ms: int) -> InterruptRequest:
    return replace(request, time=replace(request.time, answered=now_ms))

"""Restores what the model had been told at a cut: the epoch in force there, its snapshot as it was. Pure.

What was told after the cut is told again, where it still holds, at the next boundary.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.context.snapshot import Snapshot
from holdfast.context.sources import nested_instructions
from holdfast.errors import ContextError
from holdfast.runtime import moving, pins
from holdfast.schema import stored
from holdfast.schema.epoch import ContextEpoch
from holdfast.schema.ids import SessionID
from holdfast.schema.message import SystemMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.wire import JsonMap
from holdfast.store.batch import Put
from holdfast.store.record import StoredMessage, StoredRecord

_SNAPSHOT = b'"snapshot"'
_PREFIX = b'"prefix"'


class Restored(msgspec.Struct, frozen=True):
    """The change that writes the epoch, and the position that it had among the messages."""

    put: Put
    position: int


def restored(epochs: Sequence[StoredRecord], kept: Sequence[StoredMessage], session: str) -> Restored | None:
    """The epoch for another session that has the messages `kept`; None where nothing was told yet."""
    last = max((message.info.place for message in kept), default=0)
    # An epoch begins right before the prompt that it is for: without one after it, nobody was told it.
    before = [record for record in epochs if record.position < last]
    if not before:
        return None
    record = max(before, key=lambda each: each.position)
    epoch = record.value()
    assert isinstance(epoch, ContextEpoch)
    snapshot = _snapshot(epoch, kept, record.position)
    told = {str(path) for path in nested_instructions.told_in(_read(snapshot))}
    sent = _last_request(kept, epoch.id)
    restored = replace(
        epoch,
        pins=pins.restored(epoch.pins, (epoch.baseline,) if epoch.baseline else (), sent),
        session_id=SessionID(session),
        snapshot=snapshot,
        nested=[path for path in epoch.nested if path in told],
        time=replace(epoch.time, ended=None),
    )
    put = Put(session, "epoch", epoch.id, stored.strip("epoch", restored), mark=stored.mark(restored))
    return Restored(put, record.position)


def _last_request(kept: Sequence[StoredMessage], epoch: str) -> list[str]:
    """The names of the blocks of the last request that the kept history tells of."""
    steps = [
        MessageWithParts(
            message.info.value(), tuple(part.value() for part in message.parts if _PREFIX in part.data)
        )
        for message in sorted(kept, key=lambda each: each.info.place)
        if any(_PREFIX in part.data for part in message.parts)
    ]
    return moving.before(steps, epoch).blocks


def _snapshot(epoch: ContextEpoch, kept: Sequence[StoredMessage], position: int) -> JsonMap:
    """What had been admitted: by the last system message before the cut, or by the baseline alone."""
    for message in sorted(kept, key=lambda each: each.info.place, reverse=True):
        if message.info.place < position:
            break
        if _SNAPSHOT in message.info.data:
            value = message.info.value()
            if isinstance(value, SystemMessage) and value.snapshot is not None:
                return value.snapshot
    return epoch.begun


def _read(snapshot: JsonMap) -> Snapshot:
    try:
        return Snapshot.from_json(snapshot)
    except ContextError:
        return Snapshot()

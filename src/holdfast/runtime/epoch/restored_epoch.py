"""The Context Epoch in force at a cut of the history, with the snapshot of that moment. Pure.

What the model was told after the cut and still holds is told again at the next boundary, of the fork or of
the session that was reverted.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.context.snapshot import Snapshot
from holdfast.context.sources import nested_instructions
from holdfast.provider.request import marks
from holdfast.runtime.epoch import pins, prefix_change, pruning
from holdfast.runtime.epoch.pins import Sent
from holdfast.schema.epoch import ContextEpoch, SentRequest
from holdfast.schema.ids import SessionID
from holdfast.schema.message import AssistantMessage, MessageWithParts, SystemMessage
from holdfast.schema.part import StepStartPart, ToolPart
from holdfast.schema.wire import JsonMap
from holdfast.store.batch import Put
from holdfast.store.put import put
from holdfast.store.record import StoredMessage, StoredRecord

_SNAPSHOT = b'"snapshot"'
_PREFIX = b'"prefix"'
_REFUSED = b'"refused"'
_PRUNED_FOR = b'"prunedFor"'


class RestoredEpoch(msgspec.Struct, frozen=True):
    """The change that writes the epoch, and its position among the messages."""

    put: Put
    position: int


def restored(
    epochs: Sequence[StoredRecord],
    kept: Sequence[StoredMessage],
    session: str,
    *,
    cut: int | None = None,
    unpruned: bool = False,
) -> RestoredEpoch | None:
    """The epoch for a session that has the messages `kept`; None if the model was told nothing before the
    cut.

    `cut`: the place of the first message that is left out, if any. `unpruned`: output that was pruned after
    the cut is shown again.
    """
    last = max((message.info.place for message in kept), default=0)
    # An epoch begins right before its first prompt: if no prompt follows it, the model was never sent it.
    before = [record for record in epochs if record.position < last]
    if not before:
        return None
    record = max(before, key=lambda each: each.position)
    epoch = record.value()
    assert isinstance(epoch, ContextEpoch)
    snapshot = _snapshot(epoch, kept, record.position)
    known = {str(path) for path in nested_instructions.paths_in(Snapshot.readable(snapshot))}
    asked = steps(kept)
    requests = prefix_change.requests(asked).count(epoch.id)
    # What the user removed after the cut is not missing before it.
    sent = epoch.sent if requests + 1 == epoch.edited_at and not _is_later(epoch.sent, cut) else None
    was = pins.restored(epoch.pins, _sent(asked, replace(epoch, sent=sent)))
    # Why the fork's first request differs from the last request that is kept; the source session may have
    # recorded the reason already.
    edited = epoch.edited_at is not None and requests < epoch.edited_at
    reasons = (
        was.moved,
        prefix_change.EDIT if edited else None,
        prefix_change.PRUNING if unpruned else None,
        prefix_change.QUARANTINE if _is_quarantined(kept, asked) else None,
    )
    restored = replace(
        epoch,
        pins=was.pins,
        session_id=SessionID(session),
        snapshot=snapshot,
        sent=None if sent is None else replace(sent, at=None),
        nested=[path for path in epoch.nested if path in known],
        reasons=tuple(reason for reason in reasons if reason is not None),
        left=epoch.left if record is max(epochs, key=lambda each: each.position) else None,
        time=replace(epoch.time, ended=None),
    )
    return RestoredEpoch(put(restored), record.position)


def unpruned(kept: Sequence[StoredMessage]) -> list[ToolPart]:
    """The calls whose output was pruned after the cut, as they were at the cut."""
    parts = [part for message in kept for part in message.parts if _PRUNED_FOR in part.data]
    if not parts:
        return []
    requests = prefix_change.requests(steps(kept))
    values = [value for part in parts if isinstance(value := part.value(), ToolPart)]
    whole = [(value, pruning.unpruned(value, requests)) for value in values]
    return [now for value, now in whole if now is not value]


def _is_later(sent: SentRequest | None, cut: int | None) -> bool:
    """Whether a request contained more than the messages before the cut."""
    return sent is not None and sent.at is not None and cut is not None and cut < sent.at


def _is_quarantined(kept: Sequence[StoredMessage], asked: Sequence[MessageWithParts]) -> bool:
    """Whether quarantined content makes the next request differ from the last one that is kept: content was
    taken out since, or was taken out for that request and is shown again.
    """
    parts = [part for message in kept for part in message.parts if _REFUSED in part.data]
    return any(marks.is_marked(part.value()) for part in parts) or any(
        isinstance(part, StepStartPart)
        and part.prefix is not None
        and part.prefix.moved == prefix_change.QUARANTINE
        for message in asked
        for part in message.parts
    )


def steps(kept: Sequence[StoredMessage]) -> list[MessageWithParts]:
    """The answers that have steps with a request, reduced to those steps, in the model's order; before them
    the prompt that the last of them answers.
    """
    answers = [
        MessageWithParts(
            message.info.value(), tuple(part.value() for part in message.parts if _PREFIX in part.data)
        )
        for message in sorted(kept, key=lambda each: each.info.place)
        if any(_PREFIX in part.data for part in message.parts)
    ]
    last = answers[-1].info if answers else None
    prompt = last.parent_id if isinstance(last, AssistantMessage) else None
    return [MessageWithParts(each.info.value(), ()) for each in kept if each.info.id == prompt] + answers


def _sent(asked: Sequence[MessageWithParts], epoch: ContextEpoch) -> Sent:
    """The last request of the epoch in the kept history."""
    last = prefix_change.before(asked, epoch)
    return Sent(
        names=[] if last is None else last.blocks,
        tools=pins.formed(None if last is None else last.schema),
        system=(epoch.baseline,) if epoch.baseline else (),
    )


def _snapshot(epoch: ContextEpoch, kept: Sequence[StoredMessage], position: int) -> JsonMap:
    """The snapshot at the cut: that of the last system message before it, or else of the baseline."""
    for message in sorted(kept, key=lambda each: each.info.place, reverse=True):
        if message.info.place < position:
            break
        if _SNAPSHOT in message.info.data:
            value = message.info.value()
            if isinstance(value, SystemMessage) and value.snapshot is not None:
                return value.snapshot
    return epoch.begun

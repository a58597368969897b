"""Commits a staged revert: what it hides is removed, and the Context Epoch of that point is in force again.

The changes go into the commit of whatever brings them about, so that a crash leaves a staged revert or a
committed one. Files are not touched here: they were put back when the revert was staged.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.errors import Refused
from holdfast.runtime.budget.totals import with_usage
from holdfast.schema.part import StepFinishPart
from holdfast.schema.session import CommittedRevert, Revert, Session
from holdfast.schema.times import Created
from holdfast.store import reverted
from holdfast.store.base import Store
from holdfast.store.batch import Change, Remove
from holdfast.store.put import put
from holdfast.store.query import MessageQuery
from holdfast.store.record import SessionRecord, StoredMessage
from holdfast.store.reverted import Hidden

KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""How long the files of a committed revert can be put back."""
KEPT_MAX: Final = 20
_STEP_FINISH: Final = b'"step-finish"'


class RevertUnfinished(Refused):
    """The files of the staged revert were not all written: it has to be finished first."""


class Committed(msgspec.Struct, frozen=True):
    """The session without its revert, and what else changes. The caller writes both in one commit, which
    expects the session unchanged.
    """

    session: Session
    changes: tuple[Change, ...] = ()


async def committed(store: Store, record: SessionRecord, now_ms: int) -> Committed:
    """What the commit of a session's staged revert changes; nothing if there is none."""
    session = record.value()
    revert = session.revert
    if revert is None:
        return Committed(session)
    if revert.writes is not None:
        raise RevertUnfinished(
            f"a revert of session {session.id} was cut off; `holdfast session revert {session.id}` or "
            f"`holdfast session unrevert {session.id}` finishes it"
        )
    session = replace(session, revert=None, reverted=_remembered(session, revert, now_ms))
    hidden = await reverted.find(store, record)
    if hidden is None:
        return Committed(session)
    history = (await store.messages(MessageQuery(session.id, reverted=True))).messages
    kept = [each for each in (reverted.shown(message, hidden) for message in history) if each is not None]
    removals = _removals(history, hidden)
    gone = [step for message in history for step in _hidden_steps(message, hidden)]
    epochs = await _restored_epochs(store, session, kept, hidden)
    return Committed(with_usage(session, gone=gone), (*removals, *epochs))


def _remembered(session: Session, revert: Revert, now_ms: int) -> list[CommittedRevert] | None:
    """The reverts whose files can still be put back, with this one."""
    known = [each for each in session.reverted or () if each.time.created > now_ms - KEPT_MS]
    if revert.kept is not None:
        made = CommittedRevert(message_id=revert.message_id, kept=revert.kept, time=Created(created=now_ms))
        known = [*known, made][-KEPT_MAX:]
    return known or None


def _removals(history: Sequence[StoredMessage], hidden: Hidden) -> list[Change]:
    found: list[Change] = []
    for message in history:
        info, shown = message.info, reverted.shown(message, hidden)
        if shown is None:
            found += [Remove(info.session, "message", info.id), Remove(info.session, "prompt", info.id)]
        else:
            left = {part.id for part in shown.parts}
            found += [Remove(info.session, "part", each.id) for each in message.parts if each.id not in left]
    return found


def _hidden_steps(message: StoredMessage, hidden: Hidden) -> list[StepFinishPart]:
    """The steps of a message that go: their use leaves the session's totals."""
    shown = reverted.shown(message, hidden)
    left = set() if shown is None else {part.id for part in shown.parts}
    values = [part.value() for part in message.parts if part.id not in left and _STEP_FINISH in part.data]
    return [value for value in values if isinstance(value, StepFinishPart)]


async def _restored_epochs(
    store: Store, session: Session, kept: Sequence[StoredMessage], hidden: Hidden
) -> list[Change]:
    """The epoch in force at the cut, as it was then; those that began after it are removed."""
    from holdfast.runtime.epoch import restored_epoch

    epochs = await store.select("epoch", session=session.id)
    shown = restored_epoch.unpruned(kept)
    epoch = restored_epoch.restored(epochs, kept, session.id, cut=hidden.below, unpruned=bool(shown))
    after = -1 if epoch is None else epoch.position
    later = [Remove(session.id, "epoch", each.id) for each in epochs if each.position > after]
    return [*later, *([] if epoch is None else [epoch.put]), *map(put, shown)]

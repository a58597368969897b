"""Forks a session: copies its history up to a point, under new ids, into a session of its own.

Stored JSON is copied byte for byte. Only two references in it get new ids: the parent of an answer and the
tail of a compaction. Records that cannot hold one are not decoded.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import NotFound
from holdfast.provider.request import cache_marks
from holdfast.runtime.budget.totals import with_usage
from holdfast.schema import ids, stored, title
from holdfast.schema.ids import Mint, SessionID
from holdfast.schema.part import StepFinishPart, ToolPart
from holdfast.schema.session import CEILINGS, FORK, Session, SessionTime
from holdfast.schema.slug import make as make_slug
from holdfast.schema.stored import Mark
from holdfast.sessions.access import StoreAccess, put_session, require_session
from holdfast.store.batch import Batch, Put
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.sessions.restored_epoch import RestoredEpoch

DEPTH_MAX = 64
_STEP_FINISH = b'"step-finish"'
_PRUNED_FOR = b'"prunedFor"'
_NOTHING: Mapping[str, bytes] = MappingProxyType({})

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


async def fork(access: StoreAccess, session: str, message: str | None = None) -> Session:
    """Create a session with everything before the message, or with everything that is settled."""
    # Imported here: it loads the context sources, which takes time.
    from holdfast.sessions import restored_epoch

    source = (await require_session(access, session)).value()
    page = await access.store.messages(MessageQuery(session))
    pending = {each.id for each in await access.store.select("prompt", session=session, mark=Mark.OPEN)}
    visible = [each for each in page.messages if each.info.id not in pending or each.info.id == message]
    kept = prefix(visible, session, message)
    now_ms = access.clock.now_ms()
    origin: dict[str, object] = {"sessionID": session}
    if message is not None:
        origin["messageID"] = message
    above = await _sessions_above(access, source)
    brought = [rules for each in (source, *above) for rules in _ceilings(each)]
    ceilings = [*brought, *(each.permission for each in above if each.permission)]
    if ceilings:
        origin[CEILINGS] = msgspec.to_builtins(ceilings)
    compacted = any(each.info.mark is Mark.SUMMARY for each in kept)
    if (key := cache_marks.cache_key(source, compacted=compacted)) != session:
        origin["cacheKey"] = key  # A fork of a fork still shares the first one's prefix.
    forked = Session(
        id=SessionID(access.mint.descending("ses")),
        slug=make_slug(),
        project_id=source.project_id,
        directory=source.directory,
        path=source.path,
        title=title.fork(source.title),
        agent=source.agent,
        model=source.model,
        version=__version__,
        metadata={**(source.metadata or {}), FORK: origin},
        time=SessionTime(created=now_ms, updated=now_ms),
        permission=source.permission,
        placement=source.placement,
        budget=[source, *above][-1].budget,
    )
    forked = with_usage(forked, added=list(_steps(kept)))
    shown = _shown_again(kept)
    epochs = await access.store.select("epoch", session=session)
    cut = next((each.info.place for each in visible if each.info.id == message), None)
    epoch = restored_epoch.restored(epochs, kept, forked.id, cut=cut, unpruned=bool(shown))
    puts = copies(kept, forked.id, access.mint, epoch, shown)
    await access.store.commit(Batch((put_session(forked), *puts)))
    return forked


async def _sessions_above(access: StoreAccess, session: Session) -> list[Session]:
    """The ancestors of a session, its root last.

    A fork has no parent: the rules of its source's ancestors and their budget, with nothing spent of it, are
    copied into the fork.
    """
    above: list[Session] = []
    while (parent := (above[-1] if above else session).parent_id) is not None and len(above) < DEPTH_MAX:
        record = await access.store.session(parent)
        if record is None:
            break
        above.append(record.value())
    return above


def _ceilings(session: Session) -> list[object]:
    """The rules that the source, itself a fork, got from its own source."""
    origin = (session.metadata or {}).get(FORK)
    brought = origin.get(CEILINGS) if isinstance(origin, dict) else None
    return brought if isinstance(brought, list) else []


def prefix(messages: Iterable[StoredMessage], session: str, cut: str | None) -> list[StoredMessage]:
    """The messages before the cut in the model's history, without answers that are still being written."""
    ordered = sorted(messages, key=lambda message: message.info.place)
    if cut is None:
        return [message for message in ordered if message.info.mark is not Mark.OPEN]
    for number, message in enumerate(ordered):
        if message.info.id == cut:
            return [kept for kept in ordered[:number] if kept.info.mark is not Mark.OPEN]
    raise NotFound(f"message {cut[:60]} does not exist in session {session}")


def copies(
    messages: Iterable[StoredMessage],
    session: str,
    mint: Mint,
    epoch: "RestoredEpoch | None" = None,
    shown: Mapping[str, bytes] = _NOTHING,
) -> Iterable[Put]:
    """The puts that write messages and parts into another session, under new ids in ascending order.

    The epoch in force keeps its place among them: system messages before it belong to former epochs. `shown`
    replaces parts that are written in another state than the stored one.
    """
    names: dict[bytes, msgspec.Raw] = {}
    top = ""
    for message in messages:
        if epoch is not None and message.info.place > epoch.position:
            yield epoch.put
            epoch = None
        id = mint.above("msg", top)
        top = ids.body(id)
        names[b'"%b"' % message.info.id.encode()] = msgspec.Raw(b'"%b"' % id.encode())
        data = _renamed(message.info.data, "parentID", names)
        yield Put(session, "message", id, data, mark=message.info.mark)
        for part in message.parts:
            data = _renamed(shown.get(part.id, part.data), "tail_start_id", names)
            part_id = mint.above("prt", top)
            top = ids.body(part_id)
            yield Put(session, "part", part_id, data, parent=id, mark=part.mark)
    if epoch is not None:
        yield epoch.put


def _shown_again(kept: Sequence[StoredMessage]) -> dict[str, bytes]:
    """The parts whose output was pruned after the cut, as they were at the cut."""
    parts = [part for message in kept for part in message.parts if _PRUNED_FOR in part.data]
    if not parts:
        return {}
    from holdfast.runtime.epoch import prefix_change, pruning
    from holdfast.sessions import restored_epoch

    requests = prefix_change.requests(restored_epoch.steps(kept))
    values = [value for part in parts if isinstance(value := part.value(), ToolPart)]
    whole = [(value, pruning.unpruned(value, requests)) for value in values]
    return {value.id: stored.strip("part", now) for value, now in whole if now is not value}


def _renamed(data: bytes, field: str, names: dict[bytes, msgspec.Raw]) -> bytes:
    """The JSON with the id in one field replaced by its new id; every other byte is kept."""
    if b'"%b"' % field.encode() not in data:
        return data
    fields = _fields.decode(data)
    name = names.get(bytes(fields.get(field, b"")))
    if name is None:
        return data
    fields[field] = name
    return msgspec.json.encode(fields)


def _steps(messages: Iterable[StoredMessage]) -> Iterable[StepFinishPart]:
    for message in messages:
        for part in message.parts:
            if _STEP_FINISH in part.data and isinstance(value := part.value(), StepFinishPart):
                yield value

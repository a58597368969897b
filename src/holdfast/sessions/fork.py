"""Forks a session: copies its history up to a point, under new ids, into a session of its own.

Stored JSON is copied byte for byte, by the store itself. Only two references in it get new ids: the parent of
an answer and the tail of a compaction. Records that cannot hold one, nor anything else that a fork asks for,
are neither read nor decoded here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from holdfast.errors import NotFound, RecordCorrupt
from holdfast.provider.request import cache_marks
from holdfast.runtime.budget.totals import with_usage
from holdfast.schema import stored, title, typed
from holdfast.schema.ids import SessionID
from holdfast.schema.part import StepFinishPart
from holdfast.schema.session import CEILINGS, FORK, SOURCES, Session, SessionTime
from holdfast.schema.slug import make as make_slug
from holdfast.schema.stored import Mark
from holdfast.sessions.access import StoreAccess, put_session, require_session
from holdfast.store import reverted
from holdfast.store.batch import Batch, Change, Copies, Put, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.record import StoredMessage, StoredRecord
from holdfast.version import __version__

DEPTH_MAX = 64
_STEP_FINISH = b'"step-finish"'
_TELLS = re.compile(rb'"(?:step-finish|prunedFor|prefix|refused|tail_start_id)"').search
"""Whether a part holds anything that a fork asks for, whatever it is."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _References(msgspec.Struct, frozen=True):
    """The fields that name a message of the same session."""

    parentID: msgspec.Raw = msgspec.Raw()  # noqa: N815 - the wire's name
    tail_start_id: msgspec.Raw = msgspec.Raw()


_references = typed.decoder(_References)


async def fork(access: StoreAccess, session: str, message: str | None = None) -> Session:
    """Create a session with everything before the message, or with everything.

    An answer that is being written comes along once a call of it has begun, settled so far as is known; else
    it is left out.
    """
    # What is copied must still be what was read.
    return await on_conflict(lambda: _fork(access, session, message))


async def _fork(access: StoreAccess, session: str, message: str | None) -> Session:
    # Imported here: it loads the context sources, which takes time.
    from holdfast.runtime.epoch import restored_epoch

    record = await require_session(access, session)
    source = record.value()
    cut = None if message is None else await _place_of(access, session, message)
    hidden = await reverted.find(access.store, record)
    if hidden is not None:
        cut = hidden.below if cut is None else min(cut, hidden.below)
    read = (reverted.shown(each, hidden) for each in await access.store.originals(session, cut))
    originals = [each for each in read if each is not None]
    pending = {each.id for each in await access.store.select("prompt", session=session, mark=Mark.OPEN)}
    spoken = [each for each in originals if each.info.id not in pending]
    opened = _opened(spoken)
    whole = prefix(spoken, opened)
    kept = [_telling(each) for each in whole]
    now_ms = access.clock.now_ms()
    origin: dict[str, object] = {"sessionID": session}
    if message is not None:
        origin["messageID"] = message
    if further := _sources(source):
        origin[SOURCES] = further
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
    shown: dict[str, bytes] = {part.id: stored.strip("part", part) for part in restored_epoch.unpruned(kept)}
    epochs = await access.store.select("epoch", session=session)
    epoch = restored_epoch.restored(epochs, kept, forked.id, cut=cut, unpruned=bool(shown))
    records = [each for message in whole for each in (message.info, *message.parts)]
    ids = access.mint.rising(["msg" if each.kind == "message" else "prt" for each in records])
    changed = _changed(records, ids, {part.position for each in kept for part in each.parts}, shown)
    written: Mapping[int, Put] = {}
    known: tuple[Unchanged, ...] = ()
    if opened is not None:
        names = {record.id: id for record, id in zip(records, ids, strict=True)}
        mine = (opened.info, *opened.parts)
        puts = await _settled(access, opened, whole, forked.id, names)
        written = {record.position: put for record, put in zip(mine, puts, strict=True)}
        known = tuple(Unchanged(session, each.kind, each.id, each.seq) for each in mine)
    # The epoch in force keeps its place: system messages before it belong to former ones.
    begun = 0 if epoch is None else sum(1 + len(e.parts) for e in whole if e.info.place <= epoch.position)
    changes = [
        *copies(records[:begun], ids[:begun], forked.id, changed, written),
        *(() if epoch is None else (epoch.put,)),
        *copies(records[begun:], ids[begun:], forked.id, changed, written),
    ]
    await access.store.commit(Batch((put_session(forked), *changes), expect=known))
    return forked


def _opened(messages: Sequence[StoredMessage]) -> StoredMessage | None:
    """The answer that is being written, if it must come along."""
    if not any(record.mark is Mark.OPEN for each in messages for record in (each.info, *each.parts)):
        return None
    # Imported here: most sessions rest when they are forked.
    from holdfast.sessions import open_answer

    return open_answer.find(messages)


async def _settled(
    access: StoreAccess,
    opened: StoredMessage,
    messages: Sequence[StoredMessage],
    session: SessionID,
    names: Mapping[str, str],
) -> Sequence[Put]:
    """The records of an answer that is being written, as the fork has them. `names`: the new ids."""
    from holdfast.sessions import open_answer

    requests = [each.value() for each in await access.store.select("request", session=opened.info.session)]
    return open_answer.settled(
        opened, messages, session, names, requests, now_ms=access.clock.now_ms(), mint=access.mint
    )


async def _place_of(access: StoreAccess, session: str, message: str) -> int:
    """The place of the first message that is left out."""
    record = await access.store.get(session, "message", message)
    if record is None:
        raise NotFound(f"message {message[:60]} does not exist in session {session}")
    return record.place


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


def _sources(source: Session) -> list[object]:
    """What the source, itself a fork, is a fork of: snapshots that it names are kept for it by those."""
    origin = (source.metadata or {}).get(FORK)
    if not isinstance(origin, dict):
        return []
    further = origin.get(SOURCES)
    return [origin.get("sessionID"), *(further if isinstance(further, list) else ())][:DEPTH_MAX]


def _ceilings(session: Session) -> list[object]:
    """The rules that the source, itself a fork, got from its own source."""
    origin = (session.metadata or {}).get(FORK)
    brought = origin.get(CEILINGS) if isinstance(origin, dict) else None
    return brought if isinstance(brought, list) else []


def prefix(messages: Iterable[StoredMessage], opened: StoredMessage | None = None) -> list[StoredMessage]:
    """The messages in the order of the model's history, without answers that are still being written, but for
    the one that comes along.
    """
    settled = [each for each in messages if each.info.mark is not Mark.OPEN or each is opened]
    return sorted(settled, key=lambda message: message.info.place)


def copies(
    records: Sequence[StoredRecord],
    ids: Sequence[str],
    session: str,
    changed: Mapping[int, bytes],
    written: Mapping[int, Put],
) -> Iterable[Change]:
    """The changes that write the records into another session, each under its new id and in their order.

    By position: `changed` has the JSON of copies that do not say what the original says, `written` what is
    put in the place of a copy.
    """
    begin = 0
    for at, record in enumerate((*records, None)):
        if record is not None and record.position not in written:
            continue
        if begin < at:
            originals = tuple(records[begin:at])
            yield Copies(session, originals[0].session, originals, tuple(ids[begin:at]), changed)
        if record is not None:
            yield written[record.position]
        begin = at + 1


def _changed(
    records: Sequence[StoredRecord], new: Sequence[str], telling: AbstractSet[int], shown: Mapping[str, bytes]
) -> dict[int, bytes]:
    """By position the JSON of copies that do not say what the original says."""
    changed: dict[int, bytes] = {}
    names: dict[bytes, bytes] = {}
    for record, id in zip(records, new, strict=True):
        field, data = "tail_start_id", record.data
        if record.kind == "message":
            names[b'"%b"' % record.id.encode()] = b'"%b"' % id.encode()
            field = "parentID"
        elif record.position not in telling:
            continue
        elif record.id in shown:
            data = shown[record.id]
        try:
            data = _renamed(data, field, names)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RecordCorrupt(record.session, record.kind, record.id, str(error)) from error
        if data is not record.data:
            changed[record.position] = data
    return changed


def _telling(message: StoredMessage) -> StoredMessage:
    """The message with only those of its parts that hold anything that a fork asks for."""
    return StoredMessage(message.info, tuple(part for part in message.parts if _TELLS(part.data)))


def _renamed(data: bytes, field: str, names: Mapping[bytes, bytes]) -> bytes:
    """The JSON with the id in one field replaced by its new id; every other byte is kept."""
    had = bytes(getattr(_references.decode(data), field))
    name = names.get(had)
    if name is None:
        return data
    stands = b'"%b":%b' % (field.encode(), had)
    if data.count(stands) == 1:
        return data.replace(stands, b'"%b":%b' % (field.encode(), name))
    fields = _fields.decode(data)  # An inner field has the same name and the same id.
    fields[field] = msgspec.Raw(name)
    return msgspec.json.encode(fields)


def _steps(messages: Iterable[StoredMessage]) -> Iterable[StepFinishPart]:
    for message in messages:
        for part in message.parts:
            if _STEP_FINISH in part.data and isinstance(value := part.value(), StepFinishPart):
                yield value

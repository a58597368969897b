"""Forks a session: its history up to a point, under new ids, in a session of its own.

Stored JSON is copied without a decode. Only two references inside it are named anew, an answer's question
and a compaction's kept tail; both stand where our own encoder puts them.
"""

from collections.abc import Iterable

from holdfast.errors import NotFound
from holdfast.schema import ids, title
from holdfast.schema.ids import Mint, SessionID
from holdfast.schema.part import StepFinishPart
from holdfast.schema.session import Session, SessionTime
from holdfast.schema.slug import make as make_slug
from holdfast.schema.stored import Mark
from holdfast.sessions.editing import with_usage
from holdfast.sessions.room import Room, found, put_session, session_of
from holdfast.store.batch import Batch, Put
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage
from holdfast.version import __version__

_ASSISTANT = b'{"role":"assistant"'
_COMPACTION = b'{"type":"compaction"'
_STEP_FINISH = b'{"type":"step-finish"'


async def fork(room: Room, session: str, message: str | None = None) -> Session:
    """A new session with everything before the message, or with all that is settled."""
    source = session_of(await found(room, session))
    page = await room.store.messages(MessageQuery(session))
    kept = prefix(page.messages, session, message)
    now_ms = room.clock.now_ms()
    origin = {"sessionID": session} if message is None else {"sessionID": session, "messageID": message}
    forked = Session(
        id=SessionID(room.mint.descending("ses")),
        slug=make_slug(),
        project_id=source.project_id,
        directory=source.directory,
        path=source.path,
        title=title.fork(source.title),
        agent=source.agent,
        model=source.model,
        version=__version__,
        metadata={**(source.metadata or {}), "fork": origin},
        time=SessionTime(created=now_ms, updated=now_ms),
        permission=source.permission,
        placement=source.placement,
    )
    forked = with_usage(forked, added=list(_steps(kept)))
    await room.store.commit(Batch((put_session(forked), *copies(kept, forked.id, room.mint))))
    return forked


def prefix(messages: Iterable[StoredMessage], session: str, cut: str | None) -> list[StoredMessage]:
    """What stands before the cut in the model's history, less answers that are still being written."""
    ordered = sorted(messages, key=lambda message: message.info.place)
    if cut is None:
        return [message for message in ordered if message.info.mark is not Mark.OPEN]
    for number, message in enumerate(ordered):
        if message.info.id == cut:
            return [kept for kept in ordered[:number] if kept.info.mark is not Mark.OPEN]
    raise NotFound(f"message {cut[:60]} does not exist in session {session}")


def copies(messages: Iterable[StoredMessage], session: str, mint: Mint) -> Iterable[Put]:
    """The puts that write messages and parts into another session, under new ids that rise."""
    names: dict[bytes, bytes] = {}
    top = ""
    for message in messages:
        id = mint.above("msg", top)
        top = ids.body(id)
        names[message.info.id.encode()] = id.encode()
        data = message.info.data
        if data.startswith(_ASSISTANT):
            data = _renamed(data, b'"parentID":"', names)
        yield Put(session, "message", id, data, mark=message.info.mark)
        for part in message.parts:
            data = part.data
            if data.startswith(_COMPACTION):
                data = _renamed(data, b'"tail_start_id":"', names)
            part_id = mint.above("prt", top)
            top = ids.body(part_id)
            yield Put(session, "part", part_id, data, parent=id, mark=part.mark)


def _renamed(data: bytes, key: bytes, names: dict[bytes, bytes]) -> bytes:
    """The JSON with the id behind its first such key named anew; ids have no character that JSON escapes."""
    start = data.find(key)
    if start < 0:
        return data
    start += len(key)
    end = data.index(b'"', start)
    name = names.get(data[start:end])
    return data if name is None else data[:start] + name + data[end:]


def _steps(messages: Iterable[StoredMessage]) -> Iterable[StepFinishPart]:
    for message in messages:
        for part in message.parts:
            if part.data.startswith(_STEP_FINISH):
                value = part.value()
                assert isinstance(value, StepFinishPart)
                yield value

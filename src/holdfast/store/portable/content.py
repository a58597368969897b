"""What a session holds, as the changes that would make it again: the form in which two are compared.

Order is what must survive. The changes stand in the order of the numbers that the store gave: messages where
they were created, each with its parts; the other records between them; and a promotion (`placed`) where it
happened. Replayed, they give every message the same place among its neighbours. The numbers themselves, the
claims and the share (which has a secret) are left out.
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from holdfast.errors import NotFound
from holdfast.schema import stored
from holdfast.schema.session import Session
from holdfast.schema.stored import Kind
from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.query import LIMIT_MAX, MessageQuery, SessionQuery
from holdfast.store.record import SessionRecord, StoredMessage, StoredRecord

TRIES = 3
"""How often a session that somebody writes to is read anew before it is taken as it came."""

BESIDE: tuple[Kind, ...] = ("epoch", "prompt", "request")
"""The records that stand between the messages."""

LISTS: tuple[Kind, ...] = ("todo", "diff")
"""The records of which a session has one."""


class Content(msgspec.Struct):
    """A session without its share, and the changes that fill it."""

    session: Session
    changes: list[Put]

    def head(self) -> Put:
        """The change that makes the session itself."""
        id = self.session.id
        return Put(id, "session", id, stored.strip("session", self.session))


async def gather(store: Store, session: str) -> Content:
    """Read everything that a session holds; as of one moment, unless it is being written all the time."""
    record = await _found(store, session)
    for attempt in range(1, TRIES + 1):
        page = await store.messages(MessageQuery(session))
        beside = [each for kind in BESIDE for each in await store.select(kind, session=session)]
        lists = [await store.get(session, kind, session) for kind in LISTS]
        before, record = record, await _found(store, session)
        if record.head == before.head or attempt == TRIES:
            value = stored.load("session", record.data, id=session)
            assert isinstance(value, Session)
            alone = (_put(each) for each in lists if each is not None)
            return Content(replace(value, share=None), [*_in_order(page.messages, beside), *alone])
    raise AssertionError("unreachable")


async def family(store: Store, session: str) -> list[str]:
    """The session and all its descendants, parents first, siblings as they were created."""
    await _found(store, session)
    ids = [session]
    for parent in ids:  # grows while it is walked: each generation behind the one before
        children: list[SessionRecord] = []
        cursor: str | None = None
        while True:
            query = SessionQuery(parent=parent, archived=None, limit=LIMIT_MAX, cursor=cursor)
            page = await store.sessions(query)
            children.extend(page.sessions)
            cursor = page.next
            if cursor is None:
                break
        ids.extend(child.id for child in sorted(children, key=lambda child: child.position))
    return ids


def same(one: Content, other: Content) -> bool:
    """Whether two sessions hold the same; stored JSON is compared by what it says."""
    if len(one.changes) != len(other.changes) or one.session.id != other.session.id:
        return False
    pairs = zip((one.head(), *one.changes), (other.head(), *other.changes), strict=True)
    return all(_key(a) == _key(b) and _says_same(a.data, b.data) for a, b in pairs)


async def _found(store: Store, session: str) -> SessionRecord:
    record = await store.session(session)
    if record is None:
        raise NotFound(f"session {session[:60]} does not exist")
    return record


def _in_order(messages: tuple[StoredMessage, ...], beside: list[StoredRecord]) -> Iterator[Put]:
    """The changes by number. A record and its promotion have numbers of their own, so none are equal."""
    steps: list[tuple[int, StoredMessage | StoredRecord]] = []
    for message in messages:
        steps.append((message.info.position, message))
        if message.info.place != message.info.position:
            steps.append((message.info.place, message.info))
    steps.extend((record.position, record) for record in beside)
    for _, step in sorted(steps, key=lambda pair: pair[0]):
        match step:
            case StoredMessage():
                yield _put(step.info)
                yield from map(_put, step.parts)
            case StoredRecord():
                yield replace(_put(step), placed=step.kind == "message")


def _put(record: StoredRecord) -> Put:
    return Put(record.session, record.kind, record.id, record.data, record.parent, record.mark)


def _key(put: Put) -> tuple[str, str, str | None, bool]:
    return put.kind, put.id, put.parent, put.placed


def _says_same(one: bytes, other: bytes) -> bool:
    return one == other or bool(msgspec.json.decode(one) == msgspec.json.decode(other))

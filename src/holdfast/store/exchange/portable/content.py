"""What a session holds, as the changes that would make it again: the form in which two are compared.

Order is what must survive. The changes stand in the order of the numbers that the store gave: messages where
they were created, each with its parts; the other records between them; and a promotion (`placed`) where it
happened. Replayed, they give every message the same place among its neighbours. The numbers themselves, the
claims and the share (which has a secret) are left out.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from holdfast.errors import NotFound, RecordCorrupt
from holdfast.schema import stored
from holdfast.schema.session import Session
from holdfast.schema.stored import Kind
from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.put import put
from holdfast.store.query import LIMIT_MAX, MessageQuery, SessionQuery
from holdfast.store.record import SessionRecord, StoredMessage, StoredRecord

TRIES = 3
"""How often a session that is being written is read again before it is taken as it came."""

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
        return put(self.session)


class Losses:
    """The names of records that cannot be read, and so are left out; `strict` ones end the reading."""

    def __init__(self, *, strict: bool = False) -> None:
        self.names: list[str] = []
        self._strict = strict

    def sound(self, record: StoredRecord) -> bool:
        """Whether a record can be read; if not, it is noted."""
        try:
            record.value()
        except RecordCorrupt as error:
            self.note(error)
            return False
        return True

    def note(self, error: RecordCorrupt) -> None:
        """Note a record that is left out; nothing may be, where one is strict."""
        if self._strict:
            raise error
        of = f" of {error.session}" if error.session and error.kind != "session" else ""
        self.names.append(f"{error.kind} {error.id}{of}")

    def left(self, messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
        """The messages that can be read, with the parts of them that can; parts go with their message."""
        found: list[StoredMessage] = []
        for message in messages:
            parts = tuple(part for part in message.parts if self.sound(part))
            if self.sound(message.info):
                found.append(StoredMessage(message.info, parts))
            else:
                self.names += [f"part {part.id} of {part.session}" for part in parts]
        return tuple(found)


async def gather(store: Store, session: str, losses: Losses | None = None) -> Content:
    """Read everything that a session holds; as of one moment, unless it is being written all the time.

    A record that cannot be read is `RecordCorrupt`; with `losses` it is left out and noted there.
    """
    record = await _found(store, session)
    for attempt in range(1, TRIES + 1):
        page = await store.messages(MessageQuery(session, damaged=losses is not None, reverted=True))
        beside = [each for kind in BESIDE for each in await store.select(kind, session=session)]
        lists = [each for kind in LISTS for each in await store.select(kind, session=session)]
        before, record = record, await _found(store, session)
        if record.head == before.head or attempt == TRIES:
            value = stored.load("session", record.data, id=session)
            assert isinstance(value, Session)
            messages = page.messages
            if losses is not None:
                messages = losses.left(messages)
                beside = [each for each in beside if losses.sound(each)]
                lists = [each for each in lists if losses.sound(each)]
            alone = (_put(each) for each in lists if each.id == session)
            return Content(replace(value, share=None, agent_run=None), [*_in_order(messages, beside), *alone])
    raise AssertionError("unreachable")


async def family(store: Store, session: str) -> list[str]:
    """The session and all its descendants, parents first, siblings as they were created."""
    await _found(store, session)
    ids = [session]
    for parent in ids:  # grows while it is walked: each generation behind the one before
        children: list[SessionRecord] = []
        damaged: list[str] = []
        cursor: str | None = None
        while True:
            query = SessionQuery(
                parent=parent, archived=None, agent_runs=None, limit=LIMIT_MAX, cursor=cursor
            )
            page = await store.sessions(query)
            children.extend(page.sessions)
            damaged.extend(page.damaged)
            cursor = page.next
            if cursor is None:
                break
        ids.extend(child.id for child in sorted(children, key=lambda child: child.position))
        ids.extend(damaged)
    return ids


async def trees(store: Store) -> list[str]:
    """The sessions that have none above them here; those that cannot be read come last."""
    parents: dict[str, str | None] = {}
    damaged: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.sessions(
            SessionQuery(archived=None, agent_runs=None, limit=LIMIT_MAX, cursor=cursor)
        )
        for record in page.sessions:
            try:
                parents[record.id] = record.value().parent_id
            except RecordCorrupt:
                damaged.append(record.id)
        damaged.extend(page.damaged)
        cursor = page.next
        if cursor is None:
            break
    below = {id for id, parent in parents.items() if parent in parents}
    return [*(id for id in reversed(parents) if id not in below), *damaged]


def same(one: Content, other: Content) -> bool:
    """Whether two sessions hold the same; stored JSON is compared by what it says."""
    if len(one.changes) != len(other.changes) or one.session.id != other.session.id:
        return False
    pairs = zip((one.head(), *one.changes), (other.head(), *other.changes), strict=True)
    return all(_key(a) == _key(b) and _is_same_json(a.data, b.data) for a, b in pairs)


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


def _key(change: Put) -> tuple[str, str, str | None, bool]:
    return change.kind, change.id, change.parent, change.placed


def _is_same_json(one: bytes, other: bytes) -> bool:
    return one == other or bool(msgspec.json.decode(one) == msgspec.json.decode(other))

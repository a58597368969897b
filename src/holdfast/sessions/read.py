"""Reads sessions and their content."""

from functools import cache
from typing import Any

import msgspec

from holdfast.errors import NotFound, RecordCorrupt
from holdfast.schema import stored
from holdfast.schema.message import MessageWithParts
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.typed import decoder
from holdfast.sessions.access import StoreAccess, require_session
from holdfast.sessions.session_name import name_queries, only_match
from holdfast.store.query import LIMIT_MAX, MessageQuery, SessionQuery
from holdfast.store.record import JsonPage, SessionPage, SessionRecord, StoredMessage


class Messages(msgspec.Struct, frozen=True):
    """A page of messages, oldest first, and the cursors of the pages beside it."""

    messages: tuple[MessageWithParts, ...]
    older: str | None = None
    newer: str | None = None


_LATEST = 20


class Sessions(msgspec.Struct, frozen=True):
    """A page of sessions, the last updated first, and the cursor of the next.

    `damaged`: ids of sessions that cannot be read. They do not hide the others.
    """

    sessions: tuple[Session, ...]
    next: str | None = None
    damaged: tuple[str, ...] = ()


async def get(access: StoreAccess, session: str) -> Session:
    """The session."""
    return (await require_session(access, session)).value()


async def latest(access: StoreAccess, session: str) -> list[MessageWithParts]:
    """The latest messages, in the model's order."""
    page = await access.store.messages(MessageQuery(session, limit=_LATEST))
    return [
        MessageWithParts(each.info.value(), tuple(part.value() for part in each.parts))
        for each in sorted(page.messages, key=lambda message: message.info.place)
    ]


async def list_(access: StoreAccess, query: SessionQuery) -> Sessions:
    """A page of sessions."""
    page = await access.store.sessions(query)
    # One decode for the whole page takes half of the time of one a session.
    heads = [b'{"id":"%b",%b' % (record.id.encode(), record.data[1:]) for record in page.sessions]
    try:
        return Sessions(_sessions_decoder().decode(b"[%b]" % b",".join(heads)), page.next, page.damaged)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _one_by_one(page)


@cache
def _sessions_decoder() -> msgspec.json.Decoder[tuple[Session, ...]]:
    return decoder(tuple[Session, ...])


def _one_by_one(page: SessionPage) -> Sessions:
    """The sessions of a page in which one has unknown fields or cannot be read."""
    sound, damaged = [], list(page.damaged)
    for record in page.sessions:
        try:
            sound.append(record.value())
        except RecordCorrupt:
            damaged.append(record.id)
    return Sessions(tuple(sound), page.next, tuple(damaged))


async def children(access: StoreAccess, session: str, *, deep: bool = False) -> list[Session]:
    """The direct children, or all descendants, parents before children.

    A child that cannot be read is left out, as from every list; its own children are not.
    """
    await require_session(access, session)
    below: list[Session] = []
    parents = [session]
    while parents:
        pages = [await _children(access, parent) for parent in parents]
        below += [child for page in pages for child in page.sessions]
        nearest = [id for page in pages for id in (*(child.id for child in page.sessions), *page.damaged)]
        parents = nearest if deep else []
    return below


async def _children(access: StoreAccess, parent: str) -> Sessions:
    sound: list[Session] = []
    damaged: list[str] = []
    cursor: str | None = None
    while True:
        query = SessionQuery(parent=parent, archived=None, agent_runs=None, limit=LIMIT_MAX, cursor=cursor)
        page = await list_(access, query)
        sound += page.sessions
        damaged += page.damaged
        cursor = page.next
        if cursor is None:
            return Sessions(tuple(sound), None, tuple(damaged))


async def messages(access: StoreAccess, query: MessageQuery) -> Messages:
    """A page of messages with their parts."""
    # One decode a message takes half of the time of one a record. A page with a record that has unknown
    # fields, or that cannot be read, is read again record by record, so that the error names it.
    try:
        page = await access.store.messages_made(query, _message_decoder().decode)
        return Messages(page.messages, page.older, page.newer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        one_by_one = await access.store.messages(query)
    return Messages(tuple(map(typed, one_by_one.messages)), one_by_one.older, one_by_one.newer)


@cache
def _message_decoder() -> msgspec.json.Decoder[MessageWithParts]:
    return decoder(MessageWithParts)


async def messages_json(access: StoreAccess, query: MessageQuery) -> JsonPage:
    """The same page as JSON, for callers that only pass it on."""
    return await access.store.messages_json(query)


async def message(access: StoreAccess, session: str, id: str) -> MessageWithParts:
    """One message with its parts."""
    return typed(await stored_message(access, session, id))


async def stored_message(access: StoreAccess, session: str, id: str) -> StoredMessage:
    """The message as it is stored, with its parts."""
    page = await access.store.messages(MessageQuery(session, only=id))
    if not page.messages:
        raise NotFound(f"message {id[:60]} does not exist in session {session}")
    return page.messages[0]


def typed(message: StoredMessage) -> MessageWithParts:
    """Decode a message and its parts."""
    return MessageWithParts(message.info.value(), tuple(part.value() for part in message.parts))


async def todos(access: StoreAccess, session: str) -> list[Todo]:
    """The session's todo list."""
    return await _list(access, session, "todo")


async def diffs(access: StoreAccess, session: str) -> list[FileDiff]:
    """What the session changed in files."""
    return await _list(access, session, "diff")


async def _list(access: StoreAccess, session: str, kind: stored.Kind) -> list[Any]:
    await require_session(access, session)
    record = await access.store.get(session, kind, session)
    return [] if record is None else record.value()


async def named(access: StoreAccess, name: str) -> SessionRecord:
    """The one session that the user names: by id, by a unique beginning of the id, or by slug."""
    exact = await access.store.session(name) if name.startswith("ses") and name.isascii() else None
    if exact is not None:
        return exact
    matches: dict[str, SessionRecord] = {}
    for query in name_queries(name):
        matches.update((record.id, record) for record in (await access.store.sessions(query)).sessions)
    return only_match(name, list(matches.values()))

"""Turns the sessions of a file into the changes that make them.

Every record is decoded by its type before it counts, so that nothing gets into a store that the store could
not give back. A session of our own format must agree with itself; in OpenCode's, records are taken for their
session's whatever session they name, as OpenCode does.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.schema import stored, wire
from holdfast.schema.session import Session
from holdfast.schema.stored import Kind
from holdfast.store.batch import Put
from holdfast.store.exchange.portable.content import Content
from holdfast.store.exchange.portable.envelope import BesideEntry, Located, MessageEntry, SessionEntry, line
from holdfast.store.exchange.portable.names import SessionNames, record_id
from holdfast.store.exchange.portable.new_ids import Renaming
from holdfast.store.put import put, put_list

Made = dict[tuple[str, str], Put]
"""What was read so far, by kind and by the id that it has in the file."""


class Reading(msgspec.Struct, frozen=True):
    """How one session of a file is read: its names, and whether it is OpenCode's format."""

    own: SessionNames
    renaming: Renaming
    foreign: bool


def content_of(located: Located, reading: Reading) -> Content:
    """The session with all its changes, in order."""
    entry, where = located.entry, located.where
    session = _typed("session", entry.session, located.head)
    assert isinstance(session, Session)
    session = replace(reading.renaming.session(session), share=None, agent_run=None)
    changes = [*_between(entry, reading, where)]
    lists: tuple[tuple[Kind, msgspec.Raw | msgspec.UnsetType, str], ...] = (
        ("todo", entry.todos, "todos"),
        ("diff", entry.diffs, "diffs"),
    )
    for kind, raw, name in lists:
        if raw is not msgspec.UNSET:
            value = _typed(kind, raw, f"{where}.{name}")
            changes.append(put_list(session.id, kind, value))
    return Content(session, changes)


def _between(entry: SessionEntry, reading: Reading, where: str) -> Iterator[Put]:
    """The messages, and the other records where they stand between them."""
    beside = iter(enumerate(entry.records))
    waiting = next(beside, None)
    last = 0
    made: Made = {}
    for after in range(len(entry.messages) + 1):
        while waiting is not None and waiting[1].after <= after:
            number, record = waiting
            if record.after < last:
                raise InvalidInput(f"{where}.records[{number}].after: {record.after} comes after {last}")
            last = record.after
            yield _beside(record, reading, f"{where}.records[{number}]", made)
            waiting = next(beside, None)
        if after < len(entry.messages):
            yield from _message(entry.messages[after], reading, f"{where}.messages[{after}]", made)
    if waiting is not None:
        raise InvalidInput(
            f"{where}.records[{waiting[0]}].after: there are only {len(entry.messages)} messages"
        )


def _message(entry: MessageEntry, reading: Reading, where: str, made: Made) -> Iterator[Put]:
    info = _typed("message", entry.info, f"{where}.info")
    own = reading.own
    if reading.foreign:
        info = replace(info, session_id=own.id)
    _agrees(info.session_id, own.id, f"{where}.info.sessionID")
    id = info.id
    made["message", id] = put(reading.renaming.message(info))
    yield made["message", id]
    for number, raw in enumerate(entry.parts):
        at = f"{where}.parts[{number}]"
        part = _typed("part", raw, at)
        if reading.foreign:
            part = replace(part, session_id=own.id, message_id=id)
        _agrees(part.session_id, own.id, f"{at}.sessionID")
        _agrees(part.message_id, id, f"{at}.messageID")
        yield put(reading.renaming.part(part))


def _beside(record: BesideEntry, reading: Reading, where: str, made: Made) -> Put:
    own = reading.own
    if record.kind == "placed":
        return _placed(record, where, made)
    value = _typed(record.kind, record.value, f"{where}.value")
    record_id(value.id, f"{where}.value.id", "msg" if record.kind == "prompt" else "")
    _agrees(value.session_id, own.id, f"{where}.value.sessionID")
    key = (record.kind, value.id)
    if key in made:
        raise InvalidInput(f"{where}.value.id: {record.kind} {value.id} stands in the session twice")
    made[key] = put(reading.renaming.beside(value))
    return made[key]


def _placed(record: BesideEntry, where: str, made: Made) -> Put:
    """A promotion: the message once more, with a new place. It must have been created before."""
    try:
        id = wire.decode(str, bytes(record.value))
    except InvalidInput as error:
        raise InvalidInput(line(f"{where}.value: {error}")) from error
    message = made.get(("message", id))
    if message is None:
        raise InvalidInput(line(f"{where}.value: message {id[:40]!r} does not stand before it"))
    if ("placed", id) in made:
        raise InvalidInput(f"{where}.value: message {id} is promoted twice")
    made["placed", id] = replace(message, placed=True)
    return made["placed", id]


def _typed(kind: Kind, raw: msgspec.Raw, where: str) -> Any:
    try:
        return wire.decode(stored.type_of(kind), bytes(raw))
    except InvalidInput as error:
        raise InvalidInput(line(f"{where}: {error}")) from error


def _agrees(named: str, id: str, where: str) -> None:
    if named != id:
        raise InvalidInput(line(f"{where} is {named[:40]!r}, but it stands under {id}"))

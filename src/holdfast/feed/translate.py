"""From changed records to the events of the bus. Pure; stored JSON is passed on without a decode, but for the
few requests, of which clients know another form.
"""

import msgspec

from holdfast.schema import event
from holdfast.schema.wire import encode
from holdfast.store.record import Changed, StoredRecord

_quote = msgspec.json.Encoder().encode
_SYSTEM = b'{"role":"system"'

Event = tuple[str, bytes]


def event_of(change: Changed, *, now_ms: int) -> Event | None:
    """The type and properties of the event that announces a change; None where the bus has none.

    A Mid-Conversation System Message is for the model: clients of the bus do not know the role.
    """
    record = change.record
    session = _quote(record.session)
    match record.kind:
        case "session":
            name = "deleted" if change.removed else "created" if change.created else "updated"
            return f"session.{name}", b'{"sessionID":%b,"info":%b}' % (session, record.json())
        case "message" if change.removed:
            return "message.removed", b'{"sessionID":%b,"messageID":%b}' % (session, _quote(record.id))
        case "message":
            if record.data.startswith(_SYSTEM):
                return None
            return "message.updated", b'{"sessionID":%b,"info":%b}' % (session, record.json())
        case "part" if change.removed:
            return "message.part.removed", b'{"sessionID":%b,"messageID":%b,"partID":%b}' % (
                session,
                _quote(record.parent),
                _quote(record.id),
            )
        case "part":
            return part_event(record, now_ms=now_ms)
        case "todo":
            return "todo.updated", b'{"sessionID":%b,"todos":%b}' % (session, record.data or b"[]")
        case "diff":
            return "session.diff", b'{"sessionID":%b,"diff":%b}' % (session, record.data or b"[]")
        case "request" if not change.removed:
            return _request_event(record)
        case _:
            return None


def _request_event(record: StoredRecord) -> Event | None:
    """A question to the user, or its answer. An answer is announced again when its call goes on with it."""
    announced = event.requesting(record.value())
    if announced is None:
        return None
    tag = announced.__struct_config__.tag
    assert isinstance(tag, str)
    return tag, encode(announced.properties)


def former_event(change: Changed) -> Event | None:
    """What goes before a record made again: no event of the bus means that what was below the id is gone."""
    if not change.again or change.record.kind not in ("session", "message"):
        return None
    return event_of(Changed(change.record, created=False, removed=True), now_ms=0)


def part_event(record: StoredRecord, *, now_ms: int) -> Event:
    """The event that shows a part as it is."""
    return "message.part.updated", b'{"sessionID":%b,"part":%b,"time":%d}' % (
        _quote(record.session),
        record.json(),
        now_ms,
    )

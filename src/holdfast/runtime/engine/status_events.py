"""Publishes live events that are not stored: busy, retry, idle, errors, and events of tools."""

import contextlib
import re
from typing import Final

from holdfast.errors import InvalidInput, StoreError
from holdfast.feed.tail import Feed
from holdfast.schema.event import (
    ErrorProperties,
    OfSession,
    PartProperties,
    StatusProperties,
)
from holdfast.schema.fault import Fault
from holdfast.schema.ids import SessionID
from holdfast.schema.part import Part, ToolPart
from holdfast.schema.status import BusyStatus, IdleStatus, RetryStatus, SessionStatus
from holdfast.schema.wire import JsonMap, encode

OWN: Final = "holdfast.tool."
"""The prefix of the types of tools' events: they cannot imitate those of the bus."""
OWN_BYTES_MAX: Final = 64 * 1024
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


def status(feed: Feed, session: str, now: SessionStatus) -> None:
    """Publish what the session is doing."""
    feed.publish(
        "session.status", session, encode(StatusProperties(session_id=SessionID(session), status=now))
    )


def busy(feed: Feed, session: str) -> None:
    """Publish that a process works on it."""
    status(feed, session, BusyStatus())


def retry(feed: Feed, session: str, *, attempt: int, message: str, next_ms: int) -> None:
    """Publish that the provider failed and will be asked again."""
    status(feed, session, RetryStatus(attempt=attempt, message=message, next=next_ms))


async def idle(feed: Feed, session: str) -> None:
    """Publish that nothing runs any more: once, after everything else is stored and published."""
    # Unreachable: stored changes are published when they can be read again.
    with contextlib.suppress(StoreError):
        await feed.caught_up()
    status(feed, session, IdleStatus())
    feed.publish("session.idle", session, encode(OfSession(session_id=SessionID(session))))


def part(feed: Feed, shown: Part, now_ms: int) -> None:
    """Publish how a part looks now, before it is stored."""
    properties = PartProperties(session_id=shown.session_id, part=shown, time=now_ms)
    feed.publish("message.part.updated", shown.session_id, encode(properties))


def compacted(feed: Feed, session: str) -> None:
    """Publish that the model view begins with a summary now."""
    feed.publish("session.compacted", session, encode(OfSession(session_id=SessionID(session))))


def error(feed: Feed, session: str, fault: Fault) -> None:
    """Publish an error that is stored already."""
    feed.publish(
        "session.error", session, encode(ErrorProperties(session_id=SessionID(session), error=fault))
    )


def file_edited(feed: Feed, path: str) -> None:
    """Publish that a tool wrote or removed a file."""
    feed.publish("file.edited", None, encode({"file": path}))


def own(feed: Feed, call: ToolPart, name: str, properties: JsonMap) -> None:
    """Publish an event of a tool, with the call that it comes from."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name[:80]!r} is no name of an event: a-z, 0-9, _ . and -, at most 64")
    whose = {"sessionID": call.session_id, "messageID": call.message_id, "callID": call.call_id}
    data = encode({**properties, **whose})
    if len(data) > OWN_BYTES_MAX:
        raise InvalidInput(f"the event {name} has {len(data)} bytes; at most {OWN_BYTES_MAX} are told")
    feed.publish(OWN + name, call.session_id, data)

"""Sets damaged records aside, so that one of them does not hide the others."""

from typing import Any

import msgspec

from holdfast.cli.output import note
from holdfast.errors import RecordCorrupt
from holdfast.schema import stored, typed
from holdfast.store.record import SessionPage, SessionRecord, StoredRecord

BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Times(msgspec.Struct):
    """When a session was changed and put away."""

    updated: int | float
    archived: int | float | None = None


class Line(msgspec.Struct):
    """What a line of a list shows."""

    title: str
    directory: str
    time: Times
    agentRun: object = None  # noqa: N815 - the wire's name


def readable(page: SessionPage) -> list[tuple[SessionRecord, Line]]:
    """The sessions that can be shown; the others are named on standard error."""
    found = []
    for id in page.damaged:
        note(f"session {id} cannot be read; run holdfast doctor")
    for record in page.sessions:
        try:
            # All of it is decoded: what is only skipped may hold broken text.
            found.append((record, typed.convert(msgspec.json.decode(record.json()), Line)))
        except BROKEN:
            note(f"session {record.id} cannot be read; run holdfast doctor")
    return found


def session_fields(record: SessionRecord) -> dict[str, Any]:
    """The fields of a session, all of them as they should be; else `RecordCorrupt`."""
    stored.load("session", record.data, id=record.id)
    return msgspec.json.decode(record.data, type=dict[str, Any])


def content(record: StoredRecord) -> dict[str, Any]:
    """The fields of a record; `RecordCorrupt` where there are none."""
    try:
        return msgspec.json.decode(record.data, type=dict[str, Any])
    except BROKEN as error:
        raise RecordCorrupt(record.session, record.kind, record.id, str(error)) from error

"""What a listener receives: one event, encoded once and shared by all who listen."""

from typing import Any, get_args

import msgspec

from holdfast.schema import ids
from holdfast.schema.event import Event
from holdfast.schema.stored import Kind
from holdfast.schema.wire import decode
from holdfast.store.record import StoredRecord

RESYNC = "holdfast.resync"
"""The type of the frame that says: what you know may be incomplete; load it again."""

PartKey = tuple[str, str]
"""A session and a part of it: two sessions may hold parts of one id."""

_TYPES = frozenset(kind.type for kind in get_args(Event))
_encode = msgspec.json.Encoder().encode


class Origin(msgspec.Struct, frozen=True, gc=False):
    """The record state behind a durable frame, by which a late joiner distinguishes new from known."""

    session: str
    kind: Kind
    id: str
    parent: str | None
    position: int
    """Which life of the id it is: a record made again has another."""
    seq: int
    removed: bool
    ahead: bool = False
    """It shows an open part with live text, which is more than the record of that number says."""


class Frame(msgspec.Struct):
    """An event of the bus. `properties` is JSON as it was stored or published; `json` is the wire form.

    `cursor` stands only on the last frame of a batch: resume there, and nothing is skipped.
    """

    type: str
    number: int
    """Of its id: frames rise by it in the order in which they were made."""
    session: str | None
    properties: bytes
    cursor: str | None = None
    origin: Origin | None = None
    part: PartKey | None = None
    """The part that it shows or continues."""
    concerns: frozenset[str] = frozenset()
    """Sessions whose listeners receive it too, though it is an event of none."""
    directory: str | None = None
    """Where it happened, for what belongs to a directory and to no session."""
    _id: str | None = None
    _json: bytes | None = None

    @property
    def id(self) -> str:
        """Its name, made when it is first asked for: most readers of a delta never do."""
        if self._id is None:
            self._id = ids.numbered("evt", self.number)
        return self._id

    def json(self) -> bytes:
        """The event as one line of JSON, made once however many listen."""
        if self._json is None:
            self._json = b'{"id":"%b","type":"%b","properties":%b}' % (
                self.id.encode(),
                self.type.encode(),
                self.properties,
            )
        return self._json

    def value(self) -> Any:
        """The properties, decoded."""
        return msgspec.json.decode(self.properties)

    def event(self) -> Event | None:
        """The event as a typed value; None for what has no type of ours (`holdfast.…`)."""
        return decode(Event, self.json()) if self.type in _TYPES else None


class Delta(msgspec.Struct, frozen=True, gc=False):
    """Text that continues a field of an open part. Live only, never stored by itself."""

    session: str
    message: str
    part: str
    field: str
    offset: int
    """How many characters the field had before: by it a lossy path is joined to a checkpoint."""
    text: str

    def properties(self) -> bytes:
        """The properties of `message.part.delta`."""
        return b'{"sessionID":%b,"messageID":%b,"partID":%b,"field":%b,"delta":%b,"offset":%d}' % (
            _encode(self.session),
            _encode(self.message),
            _encode(self.part),
            _encode(self.field),
            _encode(self.text),
            self.offset,
        )


def origin_of(record: StoredRecord, *, removed: bool, ahead: bool = False) -> Origin:
    """Where a durable frame comes from."""
    return Origin(
        record.session, record.kind, record.id, record.parent, record.position, record.seq, removed, ahead
    )

"""What is read: records as they are stored, pages of them, and what changed after a cursor."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.schema import stored
from holdfast.schema.session import Session
from holdfast.schema.stored import Kind, Mark

T = TypeVar("T")


class StoredRecord(msgspec.Struct, frozen=True, gc=False):
    """A record with its numbers. `data` is JSON without the head fields.

    Of a tombstone it is empty, but for a session's: that one tells where the session was (`columns.stub`).
    """

    session: str
    kind: Kind
    id: str
    parent: str | None
    position: int
    """The number of the commit that created it: the order of lists."""
    seq: int
    """The number of its latest commit: the order of the feed."""
    place: int
    """Its place in the model's history: `position`, until it is promoted."""
    mark: Mark
    data: bytes

    def json(self) -> bytes:
        """The whole wire JSON, without a decode."""
        return stored.whole(self.kind, self.data, id=self.id, session=self.session, parent=self.parent)

    def value(self) -> Any:
        """The typed value; `RecordCorrupt` when the stored JSON is not one."""
        return stored.load(self.kind, self.data, id=self.id, session=self.session, parent=self.parent)


class SessionRecord(msgspec.Struct, frozen=True, gc=False):
    """A session's own record and what the store knows about it beside its JSON."""

    id: str
    position: int
    seq: int
    head: int
    """The latest number of any of its records."""
    top: str
    """The greatest message or part id body it has had (see `Rising`)."""
    owner: str | None
    """The living owner that runs it: busy is derived, never stored."""
    data: bytes
    claim: int = 0
    """The number of the claim by which it is run, or was last: each claim has a higher one."""

    def json(self) -> bytes:
        """The whole wire JSON, without a decode."""
        return stored.whole("session", self.data, id=self.id, session=self.id, parent=None)

    def value(self) -> Session:
        """The typed session; `RecordCorrupt` when the stored JSON is not one."""
        value = stored.load("session", self.data, id=self.id)
        assert isinstance(value, Session)
        return value

    def record(self) -> "StoredRecord":
        """The session's own record in the general form."""
        return StoredRecord(
            self.id, "session", self.id, None, self.position, self.seq, self.position, Mark.NONE, self.data
        )

    @property
    def busy(self) -> bool:
        """Whether a living owner runs the session."""
        return self.owner is not None


class StoredMessage(msgspec.Struct, frozen=True, gc=False):
    """A message with its parts, both in the order of their creation."""

    info: StoredRecord
    parts: tuple[StoredRecord, ...]


class MessagePage(msgspec.Struct, frozen=True):
    """Messages, oldest first, with the cursors of the pages beside them (None at an end)."""

    messages: tuple[StoredMessage, ...]
    older: str | None = None
    newer: str | None = None


class JsonPage(msgspec.Struct, frozen=True):
    """The same page as one JSON array of `{info, parts}`, assembled from stored bytes."""

    body: bytes
    older: str | None = None
    newer: str | None = None


class MadePage(msgspec.Struct, Generic[T], frozen=True):
    """The same page, with what was made of each message."""

    messages: tuple[T, ...]
    older: str | None = None
    newer: str | None = None


class SessionPage(msgspec.Struct, frozen=True):
    """Sessions, the last updated first. `damaged` are the ids of those whose content could not be had."""

    sessions: tuple[SessionRecord, ...]
    next: str | None = None
    damaged: tuple[str, ...] = ()


class Changed(msgspec.Struct, frozen=True, gc=False):
    """A record that changed after a cursor, in its latest state.

    `created` means that it did not exist at the cursor: whatever a replica knows under its id,
    children included, is replaced. `removed` is a tombstone; it takes the children along. `again` is a
    created record whose id a follower may know from a former life, which was removed.
    """

    record: StoredRecord
    created: bool
    removed: bool
    again: bool = False


class Changes(msgspec.Struct, frozen=True):
    """A run of changes: tombstones first, then records, each parent before its children.

    The cursor names a point inside a batch until `complete`; only then have all changes up to one
    moment been delivered.
    """

    records: tuple[Changed, ...]
    cursor: str
    complete: bool


class Resync(msgspec.Struct, frozen=True):
    """The cursor is too old, or of another incarnation of the store: begin again without one."""

    reason: str


class Found(msgspec.Struct, frozen=True):
    """The answer to a search: its hits, and which share of the store was searched.

    Below 1 while the search index is being made, which goes on meanwhile: ask again for the rest.
    """

    hits: tuple["Hit", ...] = ()
    indexed: float = 1.0

    def __iter__(self) -> Iterator["Hit"]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


class Hit(msgspec.Struct, frozen=True):
    """Something a search found: a session's title, or a message through one of its parts."""

    session: str
    title: str
    message: str | None
    part: str | None
    snippet: str

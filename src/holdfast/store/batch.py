"""What is written: a batch of puts, removes and copies, what it expects, and under whose fence.

A batch is all or nothing. Its changes are numbered in their order, so a parent stands before its
children. Values only: the rules they stand for are kept by each backend and shown by the contract
suite in `holdfast.testing`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from holdfast.schema.stored import Kind, Mark
from holdfast.store.record import StoredRecord


class Put(msgspec.Struct, frozen=True, gc=False):
    """Create a record, or replace its content. `data` is its JSON without the head fields (schema.stored)."""

    session: str
    kind: Kind
    id: str
    data: bytes
    parent: str | None = None
    """The message of a part; the parent of a session is read from its own JSON."""
    mark: Mark = Mark.NONE
    placed: bool = False
    """Give the record a new place in the model's history: this commit's number (a promotion)."""


class Remove(msgspec.Struct, frozen=True, gc=False):
    """Remove a record; a message takes its parts along. Removing what is absent changes nothing."""

    session: str
    kind: Kind
    id: str


class Copies(msgspec.Struct, frozen=True):
    """Create messages and parts from those of another session: their content, their marks, in this order.

    A part follows its message. `Conflict` when one of them is no longer what was read, and when the new ids
    do not rise above every message and part id that the session has had. They get one number each; the
    receipt has the last.
    """

    session: str
    source: str
    originals: tuple[StoredRecord, ...]
    """As `Store.originals` read them; an engine that copies by itself does not look at their content."""
    ids: tuple[str, ...]
    """The id of each copy."""
    changed: Mapping[int, bytes] = MappingProxyType({})
    """By the position of the original: the JSON of copies that do not say the same."""

    def last(self) -> tuple[Kind, str]:
        """The kind and the id of the last copy."""
        return self.originals[-1].kind, self.ids[-1]


Change = Put | Remove | Copies


class Fence(msgspec.Struct, frozen=True):
    """The right to write as the runner of a session: refused as soon as another owner has claimed it."""

    session: str
    owner: str
    number: int


class Unchanged(msgspec.Struct, frozen=True, tag="unchanged"):
    """The record's latest number is still `seq`; 0 means that there is no such record."""

    session: str
    kind: Kind
    id: str
    seq: int


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """No record of this kind is open, for instance no prompt of the session waits to be promoted."""

    session: str
    kind: Kind


class Unclaimed(msgspec.Struct, frozen=True, tag="unclaimed"):
    """No living owner runs the session."""

    session: str


class Rising(msgspec.Struct, frozen=True, tag="rising"):
    """Each new message or part id of the batch is greater than every one the session has had.

    Real clients insert by binary search on ids; two processes that mint at once are kept apart here.
    """

    session: str


Expectation = Unchanged | Settled | Unclaimed | Rising


class Batch(msgspec.Struct, frozen=True):
    """One commit."""

    changes: tuple[Change, ...] = ()
    expect: tuple[Expectation, ...] = ()
    fence: Fence | None = None
    release: bool = False
    """Give the fence's session back in the same commit."""

    def sessions(self) -> list[str]:
        """Every session the batch touches or asks about, in id order: the order in which they are locked."""
        names = {change.session for change in self.changes}
        names.update(change.source for change in self.changes if isinstance(change, Copies))
        names.update(expectation.session for expectation in self.expect)
        if self.fence is not None:
            names.add(self.fence.session)
        return sorted(names)


class Receipt(msgspec.Struct, frozen=True):
    """What a commit answered: the number given to each change, in order (0 where nothing changed)."""

    numbers: tuple[int, ...] = ()

    @property
    def seq(self) -> int:
        """The greatest number given, 0 when the batch changed nothing."""
        return max(self.numbers, default=0)


class Held(msgspec.Struct, frozen=True):
    """A claim that was not granted: another living owner has the session."""

    session: str
    owner: str


Scope = Literal["session", "project", "host"]


def project_scope(project: str) -> str:
    """The pseudo-session that holds a project's records."""
    return f"project_{project}"


def host_scope(host: str) -> str:
    """The pseudo-session that holds a machine's records."""
    return f"host_{host}"


def scope_of(session: str) -> Scope:
    """What kind of session an id names."""
    if session.startswith("project_"):
        return "project"
    return "host" if session.startswith("host_") else "session"

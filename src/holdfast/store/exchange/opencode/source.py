"""What a reader of some OpenCode format gives: records as decoded JSON, in the shapes of today.

A reader translates where things stand and how they are laid out, never whether they make sense: that is
`mend_*`. What it cannot read it returns as a `problem`, so that one broken file or row costs only itself.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from holdfast.store.exchange.portable.report import Tally


class RawRecord(msgspec.Struct):
    """One record: its id (from its place, never from its content), where it stands, and its JSON."""

    id: str
    where: str
    value: Any = None
    problem: str | None = None
    """Why there is no value."""
    created: int | None = None
    """When it was made, where its place says so."""
    touched: int | None = None
    """When it was last written."""


class RawMessage(msgspec.Struct):
    """A message with its parts."""

    info: RawRecord
    parts: list[RawRecord]


class RawSession(msgspec.Struct):
    """A session with all that it holds."""

    info: RawRecord
    project: str
    messages: list[RawMessage]
    todos: RawRecord | None = None
    diffs: RawRecord | None = None
    shared: bool = False
    """It was shared: a secret of it stands somewhere, and stays there."""
    ordered: bool = False
    """The messages stand in their order; otherwise it is that of their times and ids."""


class Stub(msgspec.Struct, frozen=True):
    """That there is a session, and whose child it says it is."""

    id: str
    parent: str | None
    created: int | None
    where: str
    key: tuple[str, ...] = ()
    """How its reader finds it again."""


class RawApproval(msgspec.Struct, frozen=True):
    """An "always" of the user, for a project."""

    project: str
    permission: str
    pattern: str
    created: int | None
    where: str


class Source(Protocol):
    """One place in which OpenCode kept sessions. Used by one thread at a time; it changes nothing there."""

    @property
    def name(self) -> str:
        """What it is, for the report."""

    is_database: bool
    made_ms: int | None
    """When a database took over from the formats before it, as far as it knows."""

    def projects(self, tally: Tally) -> Iterator[RawRecord]: ...

    def approvals(self, tally: Tally) -> Iterator[RawApproval]: ...

    def stubs(self, tally: Tally) -> list[Stub]:
        """Every session there is."""

    def load(self, stub: Stub, tally: Tally) -> RawSession | None:
        """All of one session; None when it is gone meanwhile."""

    def leftovers(self, tally: Tally) -> None:
        """Report what belongs to no session."""

    def close(self) -> None: ...

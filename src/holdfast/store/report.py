"""What an examination of a store found."""

from typing import Protocol

import msgspec

from holdfast.errors import HoldfastError
from holdfast.schema import stored
from holdfast.schema.stored import Kind


class Progress(Protocol):
    """Called now and then, in any thread: what is looked at, how much of it was, and of how much.

    Both are 0 where that is not known.
    """

    def __call__(self, what: str, done: int, total: int, /) -> None: ...


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, where it is, and whether it was mended."""

    what: str
    where: str
    mended: bool = False
    given_up: bool = False
    """The store is sound without it, but what it held could not be brought back."""


class Report(msgspec.Struct, frozen=True):
    """The outcome of `examine`: counts of what was looked at, and every finding."""

    sessions: int
    records: int
    findings: tuple[Finding, ...] = ()
    advice: tuple[str, ...] = ()
    """Nothing is wrong with the store itself, but its operator should know (settings of its server)."""

    @property
    def clean(self) -> bool:
        """Whether nothing is left to mend."""
        return all(finding.mended for finding in self.findings)


def complaint(kind: Kind, data: bytes, *, id: str, session: str, parent: str | None) -> str | None:
    """What is wrong with a record's JSON; None when nothing is."""
    # Whoever reads a record puts its ids in the place of its first byte, and does not look.
    if stored.HEADS[kind] and not data.startswith(b"{"):
        return "it does not begin as an object"
    try:
        data.decode()
        stored.load(kind, data, id=id, session=session, parent=parent)
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except HoldfastError as error:
        return str(error)
    return None

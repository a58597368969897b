"""What a patch says about one file."""

from typing import Literal

import msgspec

Sign = Literal[" ", "-", "+"]


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that are to be replaced by others, with unchanged ones around them in both."""

    line: int
    """Where it begins in the patch, from 1."""
    context: str | None
    """A line that comes somewhere before it (`@@ …`)."""
    lines: tuple[tuple[Sign, str], ...]
    """Unchanged (a blank), removed and added ones, in their order."""
    at_end: bool
    """It ends with the file."""

    @property
    def before(self) -> tuple[str, ...]:
        """The lines that have to stand in the file."""
        return tuple(text for sign, text in self.lines if sign != "+")


class AddFile(msgspec.Struct, frozen=True):
    path: str
    text: str


class DeleteFile(msgspec.Struct, frozen=True):
    path: str


class UpdateFile(msgspec.Struct, frozen=True):
    path: str
    move: str | None
    hunks: tuple[Hunk, ...]


Section = AddFile | DeleteFile | UpdateFile

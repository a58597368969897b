"""What a tool is about to do to one file."""

from pathlib import Path

import msgspec


class FileEdit(msgspec.Struct, frozen=True):
    """A file by its real path, and what it holds before and after; None where there is none.

    An edit whose sides are equal takes back what was said of the file before: it was not changed after all.
    """

    path: Path
    before: bytes | None
    after: bytes | None

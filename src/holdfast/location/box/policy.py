"""What a boxed command may reach: a value, and questions about it. Paths are real and absolute.

Of two entries the one for the longer path holds; at one path hiding comes first, then protecting.
"""

import os
from typing import Literal

import msgspec

Mode = Literal["workspace", "read-only"]
Access = Literal["write", "read", "none"]


class CacheLayer(msgspec.Struct, frozen=True):
    """A folder that commands read as it is and seem to write: what they write goes to `kept`."""

    path: str
    kept: str | None = None
    """None: what a command writes is gone when it ends."""


class BoxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One command's world. What no entry speaks of is read-only."""

    mode: Mode
    network: bool = False
    write: tuple[str, ...] = ()
    temporary: str | None = None
    """A folder of the session's own, at its path and in the place of /tmp."""
    caches: tuple[CacheLayer, ...] = ()
    hidden: tuple[str, ...] = ()
    revealed: tuple[str, ...] = ()
    """What stays readable below something hidden."""
    pinned: tuple[str, ...] = ()
    """Folders that cannot be renamed or replaced; what is in them stays as writable as it was."""
    protected: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    """Named sockets, or folders of them, that commands may connect to."""

    def access(self, path: str) -> Access:
        """What a command may do with what stands at an absolute path, as far as the box goes."""
        best: tuple[int, int] = (-1, -1)
        found: Access = "read"
        for rank, (verdict, folders) in enumerate(self._verdicts()):
            for folder in folders:
                if is_below(path, folder) and (len(folder), rank) > best:
                    best, found = (len(folder), rank), verdict
        return found

    def _verdicts(self) -> tuple[tuple[Access, tuple[str, ...]], ...]:
        writable = (*self.write, *(layer.path for layer in self.caches), *_TEMPORARY)
        own = () if self.temporary is None else (self.temporary,)
        return (
            ("write", (*writable, *own)),
            ("read", self.revealed),
            ("read", self.protected),
            ("none", self.hidden),
        )


_TEMPORARY = ("/dev/shm", "/dev/null", "/dev/tty", "/dev/pts", "/dev/ptmx")  # noqa: S108 - the box has its own


def is_below(path: str, folder: str) -> bool:
    """Whether a path is that folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.path.sep) + os.path.sep)

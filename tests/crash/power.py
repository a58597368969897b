"""A disk that loses power: a SQLite VFS that stops at the n-th write and forgets what was never synced.

Written but unsynced pages may be on the disk or not, in any combination, and the last write may be torn in
the middle. What was synced stays.
"""

import random
from pathlib import Path

import apsw


class PowerCut(apsw.VFS):
    """The file system. After the cut every write and sync fails."""

    def __init__(self, name: str, cut_at: int, seed: int) -> None:
        super().__init__(name, "")
        self.name = name
        self.writes = 0
        self.cut_at = cut_at
        self.is_cut = False
        self._random = random.Random(seed)
        self._unsynced: dict[str, list[tuple[int, bytes]]] = {}

    def xOpen(self, name: object, flags: list[int]) -> "PowerCutFile":  # noqa: N802 - SQLite's name
        """Open a file under watch."""
        return PowerCutFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        """Delete a file, while there is power."""
        if self.is_cut:
            raise apsw.IOError("the power is gone")
        super().xDelete(filename, syncdir)
        self._unsynced.pop(filename, None)

    def before_write(self, path: str, data: bytes, offset: int) -> bytes | None:
        """Count a write; what of it still reaches the disk at the cut, None when all of it does."""
        self.writes += 1
        if self.is_cut:
            return b""
        with Path(path).open("rb") as old:
            old.seek(offset)
            before = old.read(len(data)).ljust(len(data), b"\0")
        self._unsynced.setdefault(path, []).append((offset, before))
        if self.writes < self.cut_at:
            return None
        self.is_cut = True
        return data[: self._random.randrange(len(data) + 1)]

    def synced(self, path: str) -> None:
        """What was written to the file so far is safe."""
        self._unsynced.pop(path, None)

    def settle(self) -> None:
        """After the cut: undo a random choice of the unsynced writes, the newest first."""
        for path, writes in self._unsynced.items():
            for offset, before in reversed(writes):
                if self._random.random() < 0.5 and Path(path).exists():
                    with Path(path).open("r+b") as file:
                        file.seek(offset)
                        file.write(before)
        self._unsynced.clear()


class PowerCutFile(apsw.VFSFile):
    """One file."""

    def __init__(self, vfs: PowerCut, name: object, flags: list[int]) -> None:
        super().__init__("", name, flags)  # type: ignore[arg-type]
        self._vfs = vfs
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name or "")

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write, tear, or fail."""
        if not self._path:
            super().xWrite(data, offset)
            return
        left = self._vfs.before_write(self._path, data, offset)
        if left is None:
            super().xWrite(data, offset)
            return
        if left:
            super().xWrite(left, offset)
        raise apsw.IOError("the power is gone")

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Shorten, while there is power."""
        if self._vfs.is_cut:
            raise apsw.IOError("the power is gone")
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Make safe what was written, while there is power."""
        if self._vfs.is_cut:
            raise apsw.IOError("the power is gone")
        super().xSync(flags)
        self._vfs.synced(self._path)

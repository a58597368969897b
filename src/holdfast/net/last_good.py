"""The last good copy of what an address answered, a small private file each, and when to ask again.

What must stay true: a copy is whole or not there; no other user can read it, since an address may be a secret
(its file is named by a hash); old copies make room for new ones.
"""

import contextlib
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from holdfast.errors import HoldfastError
from holdfast.person import small_file
from holdfast.schema import typed

COPIES_MAX: Final = 200
BYTES_MAX: Final = 8 * 1024 * 1024
"""Enough for a text of 1 MiB, however it is escaped."""


class Copy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of an address. `text` is None where it never answered."""

    text: str | None = None
    etag: str | None = None
    fetched_ms: int = 0
    """When it last answered."""
    failed_ms: int = 0
    """When it last failed to, if that is later."""

    def is_due(self, now_ms: int, *, fresh_ms: int, quiet_ms: int) -> bool:
        """Whether the address has to be asked: the copy is not fresh, and it has not just failed to answer.

        A time that has not come yet counts as none.
        """
        is_fresh = self.text is not None and 0 <= now_ms - self.fetched_ms < fresh_ms
        is_quiet = self.failed_ms > 0 and 0 <= now_ms - self.failed_ms < quiet_ms
        return not is_fresh and not is_quiet


class LastGood:
    """Copies in a folder. The calls wait for the disk: run them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, url: str) -> Copy:
        """The copy; an empty one where there is none, or none that can be read."""
        try:
            data = small_file.read(self._path(url), bytes_max=BYTES_MAX)
            return Copy() if data is None else typed.decode(data, Copy)
        except (HoldfastError, msgspec.MsgspecError, ValueError):
            return Copy()

    def put(self, url: str, copy: Copy) -> None:
        """Replace the copy."""
        path = self._path(url)
        small_file.write(path, msgspec.json.encode(copy), mode=0o600)
        self._sweep(keep=path)

    def _path(self, url: str) -> Path:
        return self._folder / f"{sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()}.json"

    def _sweep(self, keep: Path) -> None:
        with contextlib.suppress(OSError):
            with os.scandir(self._folder) as entries:
                copies = [(each.stat().st_mtime_ns, each.path) for each in entries if each.is_file()]
            for _, path in _surplus(copies):
                if Path(path) != keep:
                    Path(path).unlink(missing_ok=True)


def _surplus(copies: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The oldest, as far as there are too many."""
    return sorted(copies)[: max(0, len(copies) - COPIES_MAX)]

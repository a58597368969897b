"""What boxes leave on disk: changes of caches by worktree, temporary folders. Unused ones go."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

CACHES: Final = "box-caches"
"""In the folder of our state: what commands wrote to caches."""
CACHE_DAYS: Final = 14
TEMPORARY_DAYS: Final = 7
_DAY_S: Final = 86_400
_OWNERS: Final = ("ses_", "mcp_")
"""How the names of temporary folders begin: those of sessions, and of MCP servers."""


def note_use(folder: Path) -> None:
    """A start uses the folder now."""
    with contextlib.suppress(OSError):
        os.utime(folder)


def sweep(caches: Path, temporary: Path | None) -> None:
    """Remove what no start has used for days. It blocks, and never fails: the next sweep tries again."""
    now = time.time()
    _sweep(caches, now - CACHE_DAYS * _DAY_S, lambda _: True)
    if temporary is not None:
        _sweep(temporary, now - TEMPORARY_DAYS * _DAY_S, lambda name: name.startswith(_OWNERS))


def _sweep(folder: Path, before_s: float, is_ours: Callable[[str], bool]) -> None:
    with contextlib.suppress(OSError):
        for each in list(folder.iterdir()):
            found = each.lstat()
            if is_ours(each.name) and found.st_mtime < before_s and not each.is_symlink():
                _remove(each)


def _remove(folder: Path) -> None:
    """Remove a folder; those below that are closed to their owner, as an overlay's are, are opened first."""
    for above, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(above) / name
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)

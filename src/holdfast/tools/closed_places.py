"""What of the user no tool may reach: the store, credentials and settings, wherever they lie."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from holdfast.config import places
from holdfast.person import directories

ENTRIES_MAX: Final = 10_000

_BESIDE = ("-wal", "-shm", "-journal", "-lock", "-wake", "-search", "-search-wal", "-search-shm", "-backups")
"""What a SQLite store has beside its file. They are closed before they are there: SQLite obeys a journal."""


def closed_places(stored_at: Path | None, directory: Path, worktree: Path) -> list[Path]:
    """Files and folders. The environment may name settings of the user for a session's directory."""
    found = [
        directories.data(),
        directories.config(),
        directories.opencode_config(),
        directories.opencode_data(),
    ]
    found += places.named_of_user(directory, directory if worktree.parent == worktree else worktree)
    if stored_at is not None and not stored_at.is_relative_to(directories.data()):
        found += _of_store(Path(os.path.realpath(stored_at)))
    return found


def _of_store(path: Path) -> Iterator[Path]:
    """The store's file or folder, and what belongs to it beside."""
    yield path
    yield from (path.with_name(path.name + suffix) for suffix in _BESIDE)
    try:
        with os.scandir(path.parent) as entries:
            for each in islice(entries, ENTRIES_MAX):
                if each.name.startswith((f"{path.name}-", f"{path.name}.", f".{path.name}.")):
                    yield path.parent / each.name
    except OSError:
        return

"""Writes a file that is whole or not there: under another name first, then linked to its own."""

import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import ContextError, InvalidInput
from holdfast.person.private import give_to_user
from holdfast.store.sqlite.draft import draft_beside, working
from holdfast.take_name import take_name

SALVAGED = ".salvage-"
_DRAFT = re.compile(r"\.ses_\w+\.json\.[0-9a-f]{8}")


async def write_whole(pieces: AsyncIterator[bytes], target: Path) -> int:
    """Write the pieces, for the user alone, never over a file; answer how many bytes they were."""
    size = 0
    try:
        with draft_beside(target) as draft:
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                give_to_user(fd)
                async for piece in pieces:
                    file.write(piece)
                    size += len(piece)
                file.flush()
                os.fsync(file.fileno())
            take_name(draft, target)
    except OSError as error:
        raise ContextError(f"{target} could not be written: {error.strerror or error}") from error
    return size


@contextmanager
def prepared_folder(folder: Path) -> Iterator[None]:
    """Make a folder for the user alone, and be at work there; one that is there must be empty.

    What an export that was killed has left half written there is removed, unless another is at work.
    """
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)  # The umask may have taken the user's own bits away.
    except OSError as error:
        raise _unusable(folder, error) from error
    with working(folder, lambda: _remove_left(folder)):
        try:
            is_empty = folder.is_dir() and not any(folder.iterdir())
        except OSError as error:
            raise _unusable(folder, error) from error
        if not is_empty:
            raise InvalidInput(f"{folder} is no empty folder; name another")
        yield


def _unusable(folder: Path, error: OSError) -> ContextError:
    return ContextError(f"{folder} cannot be made: {error.strerror or error}")


def _remove_left(folder: Path) -> None:
    for each in folder.iterdir() if folder.is_dir() else ():
        if each.name.startswith(SALVAGED) and each.is_dir() and not each.is_symlink():
            # Only what holds a store that was salvaged, or nothing yet.
            if all(inner.name.lstrip(".").startswith("store.db") for inner in each.iterdir()):
                shutil.rmtree(each)
        elif _DRAFT.fullmatch(each.name):
            each.unlink()

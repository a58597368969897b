"""Writes a file that is whole or not there: under another name first, then linked to its own."""

import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from holdfast.errors import ContextError, InvalidInput
from holdfast.take_name import take_name


async def write_whole(pieces: AsyncIterator[bytes], target: Path) -> int:
    """Write the pieces, for the user alone, never over a file; answer how many bytes they were."""
    size = 0
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            async for piece in pieces:
                file.write(piece)
                size += len(piece)
            file.flush()
            os.fsync(file.fileno())
        take_name(draft, target)
    except OSError as error:
        raise ContextError(f"{target} could not be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return size


def prepare_folder(folder: Path) -> None:
    """Make a folder for the user alone; one that is there must be empty."""
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700)
        elif not folder.is_dir() or any(folder.iterdir()):
            raise InvalidInput(f"{folder} is no empty folder; name another")
    except OSError as error:
        raise ContextError(f"{folder} cannot be made: {error.strerror or error}") from error

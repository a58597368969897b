"""The files of the user's that a prompt brings with their content: read, as far as the tools are concerned.

Only a digest is taken. What must stay true: no admission fails here, and what the model is not shown does not
count.
"""

import base64
import binascii
import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import anyio.to_thread

from holdfast.location.project import is_utf8
from holdfast.schema.file_part import FileRead
from holdfast.schema.prompt import FilePartInput, PartInput
from holdfast.schema.source import FileSource

FILES_MAX: Final = 64
BYTES_MAX: Final = 20 << 20
_TEXT: Final = "text/plain"


async def find_read(directory: str, parts: Sequence[PartInput]) -> dict[int, FileRead]:
    """By the place of the part in the prompt, the files whose content the model is shown."""
    files = [(number, part) for number, part in enumerate(parts) if isinstance(part, FilePartInput)]
    if not files:
        return {}
    found = await anyio.to_thread.run_sync(
        lambda: {number: _read(directory, part) for number, part in files[:FILES_MAX]}
    )
    return {number: each for number, each in found.items() if each is not None}


def _read(directory: str, part: FilePartInput) -> FileRead | None:
    try:
        path, digest = _content(directory, part)
        real = os.path.realpath(path)
    except (OSError, ValueError, binascii.Error):
        return None
    return FileRead(filepath=real, sha256=digest) if digest and is_utf8(real) else None


def _content(directory: str, part: FilePartInput) -> tuple[str, str | None]:
    """The path of a file, and the digest of its content: None where the model is not shown it."""
    if part.url.startswith("data:") and isinstance(part.source, FileSource):
        if part.mime != _TEXT and not part.mime.startswith("image/"):
            return "", None
        head, _, body = part.url.partition(",")
        data = base64.b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
        return str(Path(directory) / part.source.path), hashlib.sha256(data).hexdigest()
    address = urlsplit(part.url)
    if address.scheme != "file" or address.netloc not in ("", "localhost") or part.mime != _TEXT:
        return "", None
    path = unquote(address.path)
    return path, _digest(path)


def _digest(path: str) -> str | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > BYTES_MAX:
            return None
        return hashlib.sha256(file.read(BYTES_MAX)).hexdigest()

"""Writes contents and references into a git directory without a process for each: a file's content is kept
before every edit, and starting git would take longer than the edit.

What must stay true: what was answered is on disk; an object or reference is there whole or not at all.
"""

import contextlib
import hashlib
import os
import secrets
import zlib
from pathlib import Path

from holdfast.person.private import make_folder


def blob_id(data: bytes) -> str:
    """The id under which git knows a content."""
    return hashlib.sha1(_head(data) + data, usedforsecurity=False).hexdigest()


def write_blob(git_dir: Path, data: bytes) -> str:
    """Keep a content, and answer its id."""
    id = blob_id(data)
    path = git_dir / "objects" / id[:2] / id[2:]
    if not path.exists():
        _place(path, zlib.compress(_head(data) + data, 1))
    return id


def write_ref(git_dir: Path, name: str, id: str) -> None:
    """Keep an object under a name below `refs/`."""
    path = git_dir / "refs" / name
    if not path.exists():
        _place(path, f"{id}\n".encode("ascii"))


def _head(data: bytes) -> bytes:
    return b"blob %d\0" % len(data)


def _place(path: Path, data: bytes) -> None:
    make_folder(path.parent)
    # git takes no notice of names with this beginning, and its `prune` removes old ones.
    beside = path.parent / f"tmp_obj_{secrets.token_hex(6)}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            beside.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    finally:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

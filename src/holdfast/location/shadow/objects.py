"""Writes contents and references into a git directory without a process for each: a file's content is kept
before every edit, and starting git would take longer than the edit.

What must stay true: what was answered is on disk; an object or reference is there whole or not at all.
"""

import contextlib
import hashlib
import os
import secrets
import stat
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.person.private import give_to_user, make_folder

TEMPORARY = "tmp_obj_"
_BLOB = 3

Entry = tuple[int, str]
"""The mode of a file, and the id of its content."""


def content_id(data: bytes) -> str:
    """The id of a content, without keeping it."""
    return _id(b"blob %d\0%b" % (len(data), data))


def write_blob(git_dir: Path, data: bytes) -> str:
    """Keep a content: its id."""
    return _write(git_dir, b"blob", data)


def _write(git_dir: Path, kind: bytes, data: bytes) -> str:
    whole = b"%b %d\0%b" % (kind, len(data), data)
    id = _id(whole)
    path = git_dir / "objects" / id[:2] / id[2:]
    if not path.exists():
        _place(path, zlib.compress(whole, 1))
    return id


def _id(whole: bytes) -> str:
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest()


def pack(contents: Sequence[bytes]) -> bytes:
    """Contents as git's `index-pack` takes them: one file for all, where each by itself would be synced."""
    entries = [_entry(data) for data in contents]
    packed = b"".join((b"PACK", struct.pack(">II", 2, len(entries)), *entries))
    return packed + hashlib.sha1(packed, usedforsecurity=False).digest()


def _entry(data: bytes) -> bytes:
    """The kind of a blob and the length, seven bits a byte after the first four; then the content."""
    head, left = bytearray([_BLOB << 4 | len(data) & 15]), len(data) >> 4
    while left:
        head[-1] |= 0x80
        head.append(left & 0x7F)
        left >>= 7
    return bytes(head) + zlib.compress(data, 1)


def write_tree(git_dir: Path, files: Mapping[str, Entry]) -> str:
    """Keep a tree of files, by path: its id."""
    folders: dict[str, dict[str, Entry]] = {}
    lines: list[tuple[bytes, bytes]] = []
    for path, entry in files.items():
        name, _, rest = path.partition("/")
        if rest:
            folders.setdefault(name, {})[rest] = entry
        else:
            # Of the permissions git knows whether a file can be run, and nothing else.
            mode = entry[0] if stat.S_ISLNK(entry[0]) else 0o100755 if entry[0] & 0o100 else 0o100644
            lines.append((os.fsencode(name), _line(mode, name, entry[1])))
    for name, below in folders.items():
        id = write_tree(git_dir, below)
        lines.append((os.fsencode(name) + b"/", _line(0o40000, name, id)))  # The order git has them in.
    return _write(git_dir, b"tree", b"".join(line for _, line in sorted(lines)))


def _line(mode: int, name: str, id: str) -> bytes:
    return b"%o %b\0%b" % (mode, os.fsencode(name), bytes.fromhex(id))


def write_ref(git_dir: Path, name: str, id: str) -> None:
    """Keep an object under a name below `refs/`."""
    path = git_dir / "refs" / name
    if not path.exists():
        _place(path, f"{id}\n".encode("ascii"))


def _place(path: Path, data: bytes) -> None:
    make_folder(path.parent)
    # git takes no notice of names with this beginning, and its `prune` removes old ones.
    beside = path.parent / f"{TEMPORARY}{secrets.token_hex(6)}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            with os.fdopen(fd, "wb") as file:
                give_to_user(fd)
                file.write(data)
                file.flush()
                os.fsync(fd)
            beside.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    finally:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

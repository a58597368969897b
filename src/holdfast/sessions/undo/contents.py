"""Reads many kept contents from a shadow repository with few calls of git: one a file would take seconds."""

import math
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from holdfast import git
from holdfast.errors import ContextError
from holdfast.location.shadow.repository import Shadow

BATCH: Final = 500
BATCH_BYTES: Final = 32 << 20
"""What is read with one call holds little more, unless it is one content."""
TIMEOUT_S: Final = 120.0


def contents(shadow: Shadow, ids: Iterable[str], *, room: float = math.inf) -> dict[str, bytes]:
    """The contents that are kept, by their ids; `TooLarge` if they take more than the room for them."""
    wanted = [id for id in dict.fromkeys(ids) if is_id(id)]
    if not wanted or not (shadow.git_dir / "HEAD").exists():
        return {}
    found: dict[str, bytes] = {}
    for at in range(0, len(wanted), BATCH):
        sizes = _sizes(shadow, wanted[at : at + BATCH])
        room -= sum(sizes.values())
        if room < 0:
            raise TooLarge
        for asked in _batches(sizes):
            answers = list(_parsed(_cat(shadow, "--batch", asked)))
            if len(answers) < len(asked):
                raise _unreadable(shadow)
            found.update((id, data) for id, data in answers if data is not None)
    return found


class TooLarge(Exception):
    """There is more than may be held in memory."""


def _sizes(shadow: Shadow, ids: list[str]) -> dict[str, int]:
    """How large those are that are kept."""
    lines = [line.split(b" ") for line in _cat(shadow, "--batch-check", ids).splitlines()]
    if len(lines) < len(ids):
        raise _unreadable(shadow)
    return {words[0].decode("ascii"): int(words[2]) for words in lines if words[1] == b"blob"}


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for id, each in sizes.items():
        if batch and size + each > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(id)
        size += each
    if batch:
        yield batch


def _unreadable(shadow: Shadow) -> ContextError:
    return ContextError(f"git could not read what is kept in {shadow.git_dir}; nothing was changed")


def is_id(id: str) -> bool:
    """Whether it is a full id: what stands in a record may have been made elsewhere."""
    return len(id) in (40, 64) and not set(id) - set("0123456789abcdef")


def _cat(shadow: Shadow, how: str, ids: list[str]) -> bytes:
    given = "".join(f"{id}\n" for id in ids).encode()
    try:
        done = git.run(
            ("cat-file", how),
            cwd=shadow.git_dir,
            timeout_s=TIMEOUT_S,
            git_dir=shadow.git_dir,
            given=given,
        )
    except subprocess.TimeoutExpired as error:
        raise ContextError(f"git cat-file took longer than {TIMEOUT_S:g} s") from error
    except OSError as error:
        raise ContextError(f"git cannot be started: {error.strerror or error}") from error
    return done.stdout


def _parsed(output: bytes) -> Iterator[tuple[str, bytes | None]]:
    """`<id> blob <size>`, a line feed, the content, a line feed; `<id> missing`: None."""
    at = 0
    while (end := output.find(b"\n", at)) >= 0:
        words = output[at:end].split(b" ")
        at = end + 1
        if len(words) != 3:
            yield words[0].decode("ascii", "replace"), None
            continue
        size = int(words[2])
        if at + size < len(output):  # Or git was ended in the middle of it.
            data = output[at : at + size] if words[1] == b"blob" else None
            yield words[0].decode("ascii"), data
        at += size + 1

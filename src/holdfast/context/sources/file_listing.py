"""Lists the files of a worktree, as far as there is time: ripgrep's list, or a plain walk without it.

What must stay true: links are not followed, and looking is bounded in time and number. Names that no line of
text can hold are left out, since a name is chosen by the file's author.
"""

import os
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Final

import anyio
import msgspec

from holdfast.context.sources.look import in_thread
from holdfast.location import ripgrep

LOOK_S: Final = 3.0
"""Less than a source has in all (`system_context.LIMIT_S`)."""
LISTED_MAX: Final = 20_000
PATH_CHARS_MAX: Final = 300

_BYTES_MAX = LISTED_MAX * PATH_CHARS_MAX
_NOTHING_FOUND = 1


class Listing(msgspec.Struct, frozen=True):
    """Paths seen from the top, sorted. Not `complete` when there was no time, or no room, for all."""

    paths: tuple[str, ...]
    complete: bool


async def listing(worktree: Path) -> Listing:
    """The files, without those that the project ignores where ripgrep is there to tell."""
    program = ripgrep.program()
    if program is not None:
        found = await _by_ripgrep(program, worktree)
        if found is not None:
            return found
    deadline = time.monotonic() + LOOK_S
    return await in_thread(lambda: walked(worktree, deadline))


async def _by_ripgrep(program: str, worktree: Path) -> Listing | None:
    """None when ripgrep could not do it."""
    # No settings of the user's: they may follow links, or run a program for each file.
    command = [program, "--no-config", "--files", "--null", "--hidden", "--no-messages", "--glob", "!.git"]
    data = bytearray()
    try:
        process = await anyio.open_process(command, stdin=DEVNULL, stderr=DEVNULL, cwd=worktree)
    except OSError:
        return None
    async with process:
        assert process.stdout is not None
        code = None
        with anyio.move_on_after(LOOK_S):
            try:
                while len(data) < _BYTES_MAX:
                    data += await process.stdout.receive()
            except anyio.EndOfStream:
                code = await process.wait()
        if code is None:
            with suppress(ProcessLookupError):
                process.kill()
    if code is not None and code > _NOTHING_FOUND:
        return None
    # The last name may be half a one.
    names = [os.fsdecode(name) for name in bytes(data).split(b"\0")[:-1]]
    return listed(names, complete=code is not None)


def walked(worktree: Path, deadline: float) -> Listing:
    """The files by a plain walk, until a moment of the monotonic clock. Waits for the disk."""
    found: list[str] = []
    folders = deque([""])
    while folders:
        folder = folders.popleft()
        try:
            with os.scandir(worktree / folder) as entries:
                for each in entries:
                    if len(found) > LISTED_MAX or len(folders) > LISTED_MAX or time.monotonic() > deadline:
                        return listed(found, complete=False)
                    path = f"{folder}/{each.name}" if folder else each.name
                    if each.name == ".git":
                        continue
                    if each.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif each.is_file(follow_symlinks=False):
                        found.append(path)
        except OSError:
            continue  # What is not ours to see is not listed.
    return listed(found, complete=True)


def listed(names: list[str], *, complete: bool) -> Listing:
    """The names that can be shown, sorted, within bounds."""
    plain = [name for name in names if len(name) <= PATH_CHARS_MAX and name.isprintable()]
    return Listing(tuple(sorted(plain)[:LISTED_MAX]), complete and len(plain) <= LISTED_MAX)

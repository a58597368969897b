"""What the tools that change files have in common: look, ask, write.

What must stay true: an existing file is overwritten only if the session has read or written exactly what it
holds; nothing is written before the user's rules allow it; what is written is the whole file or nothing.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
import msgspec

from holdfast.errors import Conflict, HoldfastError
from holdfast.location import write_path
from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.file_edit import FileEdit
from holdfast.toolkit.output import ToolFailure
from holdfast.tools.builtin import access, file_kind, file_text
from holdfast.tools.builtin.file_diff import FileDiff, diff
from holdfast.tools.builtin.file_text import FileText

T = TypeVar("T")


class Locks:
    """A lock for each file: two calls of this process do not change one at the same time."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Path, anyio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, *paths: Path) -> AsyncIterator[None]:
        """Hold the locks of some files; always taken in the same order."""
        locks = [self._locks.setdefault(path, anyio.Lock()) for path in sorted(set(paths))]
        held: list[anyio.Lock] = []
        try:
            for lock in locks:
                await lock.acquire()
                held.append(lock)
            yield
        finally:
            for lock in reversed(held):
                lock.release()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one file. `before` is None for a new file, `after` for one that goes."""

    target: Resolved
    before: bytes | None
    after: bytes | None
    diff: FileDiff
    like: write_path.Kept | None = None
    """What the file that goes, or that this one was before a move, has beside its content."""

    @property
    def digest(self) -> str | None:
        """Of what it holds afterwards."""
        return None if self.after is None else write_path.digest(self.after)


async def reach(context: ToolContext, filesystem: Filesystem, path: str) -> Resolved:
    """Judge a path, and ask before anything outside is looked at."""
    target = await access.resolve(filesystem, path)
    if not target.inside:
        await access.ask_outside(context, filesystem, target)
    if target.kind == "missing":
        await in_thread(_refuse_below_file, target)
    return target


def _refuse_below_file(target: Resolved) -> None:
    above = next(folder for folder in target.real.parents if os.path.lexists(folder))
    if not above.is_dir():
        raise ToolFailure(
            f"{above} is a file, so nothing can lie below it as {target.asked} would. Choose another path."
        )


async def current(
    context: ToolContext, filesystem: Filesystem, target: Resolved, *, whole: bool = False
) -> bytes:
    """What an existing file holds; `ToolFailure` unless the session knows exactly that.

    `whole`: it goes or moves as it is. So may a binary file that was never read: `read` cannot show it.
    """
    if target.kind == "folder":
        raise ToolFailure(f"{target.asked} is a folder. Give the path of a file in it.")
    try:
        data = await in_thread(file_text.load, filesystem, target)
    except HoldfastError as error:  # It went away, or another stands in its place, since it was judged.
        raise ToolFailure(f"{target.asked} could not be read: {error}.") from error
    seen = await context.seen(target.real)
    if seen is None and whole and file_kind.is_binary(target.real.name, data[: file_kind.SNIFF_BYTES]):
        return data
    if seen is None:
        raise ToolFailure(f"{target.asked} exists, and you have not read it yet. Read it first.")
    if seen != write_path.digest(data):
        raise ToolFailure(
            f"{target.asked} was changed by somebody else since you read or wrote it. Read it again, then "
            "make your change on what it holds now."
        )
    if await in_thread(_is_read_only, target.real):
        raise ToolFailure(
            f"{target.asked} is write-protected, so it was left alone. Ask the user whether to change it; "
            "`chmod u+w` would permit it."
        )
    return data


def _is_read_only(real: Path) -> bool:
    """Whether somebody wants it to stay as it is: a file that is replaced whole would not be asked."""
    try:
        mode = real.lstat().st_mode
    except OSError:
        return False  # Another stands there by now, or nothing: the write will find that.
    return mode & 0o222 == 0 or not os.access(real, os.W_OK, follow_symlinks=False)


async def change(
    filesystem: Filesystem,
    target: Resolved,
    before: bytes | None,
    after: bytes | None,
    *,
    like: write_path.Kept | None = None,
) -> Change:
    """A change with its diff; in a thread, since a large file takes time."""
    return await in_thread(_change, filesystem, target, before, after, like)


async def kept(target: Resolved) -> write_path.Kept:
    """What a file has beside its content, before it goes."""
    try:
        return await in_thread(write_path.kept, target.real)
    except HoldfastError as error:
        raise ToolFailure(f"{target.asked} could not be read: {error}.") from error


def _change(
    filesystem: Filesystem,
    target: Resolved,
    before: bytes | None,
    after: bytes | None,
    like: write_path.Kept | None,
) -> Change:
    name = filesystem.relative(target.asked)
    try:
        old = "" if before is None else FileText.of(before, str(target.asked)).text
        new = "" if after is None else FileText.of(after, str(target.asked)).text
    except ToolFailure:
        if before is not None and after is not None:
            raise
        old = new = ""  # It comes or goes whole, and what is no text has no diff.
    return Change(target=target, before=before, after=after, diff=diff(name, old, new), like=like)


async def ask(context: ToolContext, filesystem: Filesystem, changes: list[Change], metadata: JsonMap) -> None:
    """Ask once for all changes."""
    patterns = [name for each in changes for name in filesystem.patterns(each.target)]
    await context.ask("edit", list(dict.fromkeys(patterns)), always=("*",), metadata=metadata)


async def write(context: ToolContext, changes: list[Change]) -> None:
    """Make the changes; after an error none of them stands, or the error names those that do.

    An interrupt does not stop it between two files: half a patch is what nobody asked for.
    """
    done: list[Change] = []
    try:
        with context.effect(*(str(each.target.asked) for each in changes)), anyio.CancelScope(shield=True):
            await context.keep(*map(_edit, changes))
            for each in changes:
                if each.after != each.before:
                    await in_thread(_write, each)
                    context.edited(each.target.real, each.digest)
                    done.append(each)
    except HoldfastError as error:
        left = await _put_back(context, done)
        await context.keep(*(_unchanged(each) for each in changes if str(each.target.asked) not in left))
        reason = f"{error}. Read it again and retry" if isinstance(error, Conflict) else str(error)
        rest = f" These files were changed and could not be put back: {', '.join(left)}." if left else ""
        raise ToolFailure(f"Nothing was changed: {reason}." if not left else f"{reason}.{rest}") from error


def _edit(change: Change) -> FileEdit:
    return FileEdit(change.target.real, change.before, change.after)


def _unchanged(change: Change) -> FileEdit:
    return FileEdit(change.target.real, change.before, change.before)


def _write(change: Change) -> None:
    seen = None if change.before is None else write_path.digest(change.before)
    if change.after is None:
        assert seen is not None, "only what is there can go"
        write_path.remove(change.target.real, seen=seen)
    else:
        write_path.write(change.target.real, change.after, seen=seen, like=change.like)


async def _put_back(context: ToolContext, done: list[Change]) -> list[str]:
    """Undo changes, the last first; the paths of those that could not be undone."""
    left = []
    with anyio.CancelScope(shield=True):
        for each in reversed(done):
            back = msgspec.structs.replace(each, before=each.after, after=each.before)
            try:
                await in_thread(_write, back)
                context.edited(each.target.real, back.digest)
            except HoldfastError:
                left.append(str(each.target.asked))
    return left


async def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """Do what takes time in a thread, and wait for it: no write may land behind the settlement."""
    return await anyio.to_thread.run_sync(lambda: work(*arguments))

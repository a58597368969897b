"""Asks for whatever a file tool is about to reach, before it reaches it.

What must stay true: the user is shown the real target, and rules judge the path as it was asked for and as
it resolved: a link changes neither what is denied nor what is outside.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio.to_thread

from holdfast.errors import HoldfastError
from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.output import ToolFailure

FilesystemOf = Callable[[ToolContext], Filesystem]
Reach = Callable[[ToolContext, str], Awaitable[tuple[Filesystem, Resolved]]]
"""Judges a path that is only read, with the filesystem that judged it."""
Opened = Callable[[ToolContext], Awaitable[Sequence[Path]]]
"""The folders outside that the session has opened for reading."""


def reaching(filesystem_of: FilesystemOf, opened: Opened | None = None) -> Reach:
    """How the tools that only read reach a path. What was opened is looked up only for a path outside."""

    async def reach(context: ToolContext, path: str) -> tuple[Filesystem, Resolved]:
        filesystem = filesystem_of(context)
        try:
            target = await resolve(filesystem, path)
            if target.readable or opened is None:
                return filesystem, target
        except ToolFailure:
            if opened is None:
                raise
        wider = filesystem.opening(await opened(context))
        return wider, await resolve(wider, path)

    return reach


async def resolve(filesystem: Filesystem, path: str) -> Resolved:
    """Judge a path; the model is answered what is wrong with it."""
    try:
        return await anyio.to_thread.run_sync(filesystem.resolve, path, abandon_on_cancel=True)
    except HoldfastError as error:
        raise ToolFailure(f"This path cannot be used: {error}.") from error


async def ask(context: ToolContext, filesystem: Filesystem, target: Resolved, permission: str) -> None:
    """Ask to reach a path: that it lies outside, if it does, and then what is to be done with it."""
    if not target.readable:
        await ask_outside(context, filesystem, target)
    await ask_file(context, filesystem, target, permission)


async def ask_file(context: ToolContext, filesystem: Filesystem, target: Resolved, permission: str) -> None:
    """Ask for what is to be done with a path."""
    await context.ask(
        permission,
        filesystem.patterns(target),
        always=("*",),
        metadata={"filepath": str(target.real)},
    )


def require(target: Resolved) -> None:
    """Fail where there is nothing; only after the user was asked, since the failure shows it."""
    if target.kind == "missing":
        raise ToolFailure(f"There is no file or folder {target.asked}. Look for it with glob.")


async def ask_outside(context: ToolContext, filesystem: Filesystem, target: Resolved) -> None:
    """Ask to reach a path that lies outside the project."""
    patterns = outside_patterns(filesystem, target)
    folder = _folder(target.real, target)
    await context.ask(
        "external_directory",
        patterns,
        always=savable(patterns),
        metadata={"filepath": str(target.real), "parentDir": str(folder), "asked": str(target.asked)},
    )


def outside_patterns(filesystem: Filesystem, target: Resolved) -> list[str]:
    """The folders to ask for that a path outside lies in: as it was asked for, and as it resolved."""
    folder = _folder(target.real, target)
    # What seems to lie in the project has only its real folder to ask for.
    asked = folder if filesystem.holds(target.asked) else _folder(target.asked, target)
    return [f"{each}/*".replace("//", "/") for each in dict.fromkeys((asked, folder))]


def savable(patterns: Sequence[str]) -> Sequence[str]:
    """What of them can be approved for good: all or nothing.

    A folder that is itself called by a wildcard would, approved for good, stand for many others.
    """
    return () if any(set("*?") & set(each[:-1]) for each in patterns) else patterns


def _folder(path: Path, target: Resolved) -> Path:
    return path if target.kind == "folder" else path.parent

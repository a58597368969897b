"""Asks for whatever a file tool is about to reach, before it reaches it.

What must stay true: the user is shown the real target, and rules judge the path as it was asked for and as
it resolved: a link changes neither what is denied nor what is outside.
"""

from collections.abc import Callable
from pathlib import Path

import anyio.to_thread

from holdfast.errors import HoldfastError
from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.output import ToolFailure

FilesystemOf = Callable[[ToolContext], Filesystem]


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
    await context.ask(
        permission,
        filesystem.patterns(target),
        always=("*",),
        metadata={"filepath": str(target.real)},
    )


async def ask_outside(context: ToolContext, filesystem: Filesystem, target: Resolved) -> None:
    """Ask to reach a path that lies outside the project."""
    folder = _folder(target.real, target)
    # What seems to lie in the project has only its real folder to ask for.
    asked = folder if filesystem.holds(target.asked) else _folder(target.asked, target)
    patterns = [f"{each}/*".replace("//", "/") for each in dict.fromkeys((asked, folder))]
    # A folder that is itself called by a wildcard would, approved for good, stand for many others.
    savable = [each for each in patterns if not set("*?") & set(each[:-1])]
    await context.ask(
        "external_directory",
        patterns,
        always=savable if len(savable) == len(patterns) else (),
        metadata={"filepath": str(target.real), "parentDir": str(folder), "asked": str(target.asked)},
    )


def _folder(path: Path, target: Resolved) -> Path:
    return path if target.kind == "folder" else path.parent

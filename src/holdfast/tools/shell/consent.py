"""Asks for what a command would do, before it is started.

First for the folders outside the project that it touches, then for its simple commands. What cannot be
understood is asked for by what the rules say of any command, and of any folder. In a whole box without a
network folders outside are not asked for: it writes nothing there, shows no secret and passes nothing on.
What the rules deny stays denied.
"""

import os
from collections.abc import Sequence

import anyio.to_thread
import msgspec

from holdfast.errors import HoldfastError
from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.permission.shell.read import read
from holdfast.permission.shell.reading import Reading
from holdfast.person import directories
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.output import ToolDenied, ToolFailure
from holdfast.tools.builtin import access


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for a command: the same is asked where it is to run outside a box."""

    patterns: tuple[str, ...]
    always: tuple[str, ...]
    metadata: JsonMap


async def ask(
    context: ToolContext, filesystem: Filesystem, command: str, cwd: Resolved, why: str, *, sealed: bool
) -> Consent:
    """Return when the command may run; `ToolDenied` otherwise. `cwd` is where it will start, `sealed` whether
    that is a whole box without a network.
    """
    home = str(directories.home())
    reading = await anyio.to_thread.run_sync(
        lambda: read(command, directory=str(cwd.real), home=home), abandon_on_cancel=True
    )
    metadata: JsonMap = {"command": command, "description": why}
    try:
        await _ask_outside(context, filesystem, reading, cwd, metadata, sealed=sealed)
        await _ask_commands(context, reading, metadata, sealed=sealed)
    except ToolDenied as denied:
        if reading.paths_unclear is None:
            raise
        raise ToolDenied(
            f"{denied} What the command does could not be told in advance: {reading.paths_unclear}. Write it "
            "more plainly, with its names and paths spelled out.",
            stops=denied.stops,
        ) from denied
    unclear = reading.unclear is not None
    return Consent(
        # What is not understood is itself the pattern: only a rule for any command covers it.
        patterns=(*(each.text for each in reading.patterns), *((command,) if unclear else ())) or (command,),
        always=() if unclear else tuple(each.always for each in reading.patterns if each.always is not None),
        metadata=metadata,
    )


async def _ask_outside(
    context: ToolContext,
    filesystem: Filesystem,
    reading: Reading,
    cwd: Resolved,
    metadata: JsonMap,
    *,
    sealed: bool,
) -> None:
    paths = [*reading.touched, *(each for each in reading.mentioned if _may_exist(each))]
    found = await anyio.to_thread.run_sync(_outside, filesystem, paths, abandon_on_cancel=True)
    here = [] if cwd.inside else access.outside_patterns(filesystem, cwd)
    patterns = list(dict.fromkeys((*here, *found)))
    unclear = ("external_directory",) if reading.paths_unclear and not reading.unclear else ()
    if not patterns and not unclear:
        return
    if sealed:
        if await context.verdict("external_directory", patterns or ["*"]) == "deny":
            raise ToolDenied(f"The rules deny external_directory for {', '.join(patterns) or 'any folder'}.")
        return
    await context.ask(
        "external_directory",
        patterns or ["*"],
        always=() if unclear else access.savable(patterns),
        metadata={**metadata, "directories": [each.removesuffix("/*") for each in patterns]},
        unclear=unclear,
    )


async def _ask_commands(context: ToolContext, reading: Reading, metadata: JsonMap, *, sealed: bool) -> None:
    if not reading.patterns:
        return
    unclear = ("bash",) if sealed else ("bash", "external_directory")
    await context.ask(
        "bash",
        [each.text for each in reading.patterns],
        always=[each.always for each in reading.patterns if each.always is not None],
        metadata=metadata if reading.unclear is None else {**metadata, "unclear": reading.unclear},
        aliases=[alias for each in reading.patterns for alias in each.aliases],
        unclear=() if reading.unclear is None else unclear,
    )


def _may_exist(path: str) -> bool:
    """Whether a text that looks like a path is one: what begins nowhere is a pattern, or a text."""
    return os.path.lexists("/" + path.lstrip("/").split("/", 1)[0])


def _outside(filesystem: Filesystem, paths: Sequence[str]) -> list[str]:
    found: list[str] = []
    for path in paths:
        try:
            target = filesystem.resolve(path, program=True)
        except HoldfastError as error:
            raise ToolFailure(f"The command uses a path that it may not: {error}.") from error
        if not target.readable:
            found += access.outside_patterns(filesystem, target)
    return found

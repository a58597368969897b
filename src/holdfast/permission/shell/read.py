"""Reads a command: the entry to this folder."""

import os

from holdfast.permission.shell.reading import Pattern, Reading
from holdfast.permission.shell.syntax import NotUnderstood
from holdfast.permission.shell.walk import Walk


def read(command: str, *, directory: str, home: str) -> Reading:
    """What a command would do that is started in a directory. It never raises, and takes bounded time.

    The whole text is always a pattern too where something is unclear: a rule that forbids it holds.
    """
    walk = Walk(os.path.abspath(directory), home)  # noqa: PTH100 - a text, no file is looked at
    try:
        walk.read(command)
    except NotUnderstood as error:
        walk.found.unclear = str(error)
    except RecursionError:
        walk.found.unclear = "it is nested too deeply"
    found = walk.found
    patterns = {each.text: each for each in found.patterns}
    if found.unclear is not None:
        whole = command.strip()
        patterns = {text: Pattern(text=text, aliases=each.aliases) for text, each in patterns.items()}
        patterns.setdefault(whole, Pattern(text=whole))
    return Reading(
        patterns=tuple(patterns.values()),
        touched=tuple(dict.fromkeys(found.touched)),
        mentioned=tuple(dict.fromkeys(each for each in found.mentioned if each not in found.touched)),
        unclear=found.unclear,
        paths_unclear=found.unclear or found.paths_unclear,
    )

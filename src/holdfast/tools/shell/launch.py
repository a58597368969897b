"""Puts together how a command is started: the one place that knows its argv.

An agent's commands run in bash, whatever the user's own shell is: they are judged as bash reads them
(`permission/shell`). Where there is no bash, the system's `sh` is the closest.
"""

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from holdfast.toolkit.context import ToolContext


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A command that can be started."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]


async def prepare(context: ToolContext, command: str, cwd: Path) -> Launch:
    """How a command of an agent is started."""
    return Launch(argv=(shell(), "-c", "--", command), cwd=cwd, env=await context.environment(cwd))


@cache
def shell() -> str:
    """The shell that an agent's commands are written for."""
    return shutil.which("bash") or "/bin/sh"

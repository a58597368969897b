"""The environment of every command that is run for a session: an agent's, the user's own, a check's.

It is the user's, less what a command has no use for: each variable in which any known provider looks for a
key, Holdfast's and OpenCode's own, and those that the settings hide. Plugins may add to it (`shell.env`).
"""

import os
from collections.abc import Mapping

from holdfast.permission import wildcard
from holdfast.plugins.dispatcher import Dispatcher
from holdfast.plugins.hooks import SHELL_ENV, ShellEnv, ShellWhere
from holdfast.schema.config import EnvironmentConfig
from holdfast.workspace.workspace import Workspace

OWN = ("HOLDFAST_", "OPENCODE_")
_ELSEWHERE = frozenset(("CDPATH", "OLDPWD"))
"""They lead `cd` to other folders than the command says."""


def visible(
    environment: Mapping[str, str], keys: frozenset[str], settings: EnvironmentConfig | None
) -> dict[str, str]:
    """What of an environment a command sees. Pure."""
    hide = () if settings is None else settings.hide or ()
    keep = () if settings is None else settings.keep or ()

    def is_seen(name: str) -> bool:
        if name.startswith(OWN) or name in _ELSEWHERE:
            return False
        if any(wildcard.match(name, pattern) for pattern in hide):
            return False
        return name not in keys or any(wildcard.match(name, pattern) for pattern in keep)

    return {name: value for name, value in environment.items() if is_seen(name)}


def base(workspace: Workspace) -> dict[str, str]:
    """What a command sees of the environment of this process, in a workspace."""
    return visible(os.environ, workspace.providers.key_variables(), workspace.loaded.config.environment)


async def command_environment(
    workspace: Workspace,
    plugins: Dispatcher,
    cwd: str | os.PathLike[str],
    *,
    session: str | None = None,
    call: str | None = None,
) -> dict[str, str]:
    """The environment of a command that is run in `cwd`."""
    return {**base(workspace), "TERM": "dumb", **await added(plugins, cwd, session=session, call=call)}


async def added(
    plugins: Dispatcher,
    cwd: str | os.PathLike[str],
    *,
    session: str | None = None,
    call: str | None = None,
) -> dict[str, str]:
    """What plugins add to the environment of what is run in `cwd`."""
    if not plugins.wants(SHELL_ENV):
        return {}
    where = ShellWhere(cwd=os.fspath(cwd), session_id=session, call_id=call)
    return (await plugins.call(SHELL_ENV, where, ShellEnv())).env

"""The workspace of the current directory for a command, with the user's decisions on trust."""

from collections.abc import Mapping
from typing import NamedTuple

import click

from holdfast.cli.open_store import reading
from holdfast.cli.terminal import current_directory
from holdfast.config.untrusted.well_known import Remote
from holdfast.errors import HoldfastError, StoreMissing
from holdfast.location.project import locate
from holdfast.provider.accounts import credentials
from holdfast.provider.accounts.secret import Credential
from holdfast.sessions.folder_trust import Decisions
from holdfast.store.batch import host_scope
from holdfast.store.host import ThisHost
from holdfast.workspace.workspace import Workspace, read_workspace


class Here(NamedTuple):
    """What surrounds a directory, and what was decided about it."""

    workspace: Workspace
    decisions: Decisions


def here(ctx: click.Context) -> Here:
    """Those of the current directory."""
    decisions = decided(ctx)
    remote = host_settings_of(credentials.load())
    return Here(
        read_workspace(locate(current_directory()), trusted=decisions.grant, remote=remote), decisions
    )


def decided(ctx: click.Context) -> Decisions:
    """What the user decided on this machine; nothing where there is no store yet, by name neither."""
    try:
        with reading(ctx) as store:
            return Decisions(() if store is None else store.select("trust", host_scope(ThisHost().id), None))
    except StoreMissing:
        return Decisions()


def host_settings_of(held: Mapping[str, Credential]) -> list[Remote]:
    """Settings of the hosts that the user logged in to. Most have none, and then no event loop is begun."""
    if not any(each.type == "wellknown" for each in held.values()):
        return []
    import anyio

    from holdfast.workspace import host_settings

    return anyio.run(host_settings.settings_of, host_settings.hosts_of(held))


def log_level_here(ctx: click.Context) -> str | None:
    """The `logLevel` of the current directory's settings; None where they cannot be read."""
    try:
        return here(ctx).workspace.loaded.config.log_level
    except HoldfastError:
        return None

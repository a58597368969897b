"""The workspace of a directory: its settings, agents, commands and providers.

Read from the files each time, since the user edits them while sessions run. What must stay true: the caller
says which folders are trusted, and as what; nothing here decides it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from holdfast.config import agents as config_agents
from holdfast.config import commands as config_commands
from holdfast.config import load
from holdfast.config.agents import Agents
from holdfast.config.builtin_agents import AgentPlaces
from holdfast.config.loaded import Loaded
from holdfast.config.pins.project_trust import Granted
from holdfast.config.places import Places
from holdfast.config.untrusted.well_known import Remote
from holdfast.errors import ContextError, Refused
from holdfast.location.project import Location
from holdfast.person import directories, temporary
from holdfast.provider.accounts import credentials
from holdfast.provider.accounts.resolve import Providers
from holdfast.provider.accounts.secret import Credential
from holdfast.provider.catalog import refresh
from holdfast.provider.local import catalogue
from holdfast.schema.command import Command
from holdfast.workspace import host_settings


class Workspace:
    """One directory's settings, agents and providers, as of one moment."""

    def __init__(
        self,
        places: Places,
        loaded: Loaded,
        held: Mapping[str, Credential],
        *,
        trusted: Callable[[Path], bool] = lambda _: False,
        git: bool = False,
        temporary: Path | None = None,
        is_here: bool = True,
    ) -> None:
        self.places = places
        self.trusted = trusted
        self.git = git
        self.loaded = loaded
        self.credentials = held
        self._temporary = temporary
        self.is_here = is_here
        """False where the directory does not exist on this machine: a session there can only be read."""

    def check_here(self, session: str) -> None:
        """`Refused` if the directory does not exist on this machine."""
        if not self.is_here:
            raise Refused(
                f"{self.places.directory} is not here, so session {session} can only be read; "
                f"`holdfast session move {session} [DIR]` lets it work elsewhere"
            )

    @cached_property
    def agents(self) -> Agents:
        """The agents that a session here can choose."""
        return config_agents.agents(self.loaded, agent_places(self.places, self._temporary))

    @cached_property
    def commands(self) -> dict[str, Command]:
        """Commands by name."""
        return config_commands.commands(self.loaded)

    @cached_property
    def providers(self) -> Providers:
        """The providers and models that the user has configured."""
        config = self.loaded.config
        return Providers(
            (*refresh.snapshots(), *catalogue.snapshots(config.provider or {})),
            entries=config.provider or {},
            credentials=self.credentials,
            env=os.environ,
            tokens=host_settings.tokens(self.loaded, self.credentials),
            disabled=config.disabled_providers or (),
            enabled=config.enabled_providers,
        )


def read_workspace(
    location: Location,
    *,
    trusted: Granted,
    remote: Sequence[Remote] = (),
    is_here: bool = True,
) -> Workspace:
    """Read the workspace of a directory."""
    places = places_of(location)
    loaded = load.load(places, trusted=trusted, remote=remote)
    private: Path | None = None
    try:
        private = temporary.folder()
    except ContextError as error:
        loaded = replace(loaded, warnings=(*loaded.warnings, str(error)))
    return Workspace(
        places,
        loaded,
        credentials.load(),
        trusted=loaded.trust.holds,
        git=location.vcs is not None,
        temporary=private,
        is_here=is_here,
    )


def places_of(location: Location) -> Places:
    """Where a directory's settings are. Without a checkout only the directory itself is the project."""
    directory = Path(location.directory)
    return Places(
        directory=directory,
        worktree=directory if location.vcs is None else Path(location.worktree),
        home=directories.home(),
        opencode_config=directories.opencode_config(),
        holdfast_config=directories.config(),
    )


def agent_places(places: Places, temporary: Path | None) -> AgentPlaces:
    """The directories that the built-in agents' permissions name."""
    data = directories.data()
    return AgentPlaces(
        home=places.home,
        worktree=places.worktree,
        data=data,
        tool_output=data / "tool-output",
        temporary=temporary,
    )

"""Loads the settings of the current directory for a command, with the person's decisions on trust."""

import os
from pathlib import Path
from typing import NamedTuple

import click

from holdfast.cli.current_directory import current_directory
from holdfast.cli.opening import reading
from holdfast.config import load
from holdfast.config.builtin_agents import AgentPlaces
from holdfast.config.loaded import Loaded
from holdfast.config.places import Places
from holdfast.errors import StoreMissing
from holdfast.location.project import Location, locate
from holdfast.person import directories
from holdfast.sessions.trusting import Decisions
from holdfast.store.batch import host_scope
from holdfast.store.host import ThisHost


class Here(NamedTuple):
    """The settings of a directory, and what was decided about it."""

    loaded: Loaded
    places: Places
    decisions: Decisions


def settings_here(ctx: click.Context) -> Here:
    """Those of the current directory."""
    decisions = decided(ctx)
    places = places_of(locate(current_directory()))
    return Here(load.load(places, trusted=decisions.trusted), places, decisions)


def decided(ctx: click.Context) -> Decisions:
    """What the person decided on this machine; nothing where there is no store yet, by name neither."""
    try:
        with reading(ctx) as store:
            return Decisions(() if store is None else store.select("trust", host_scope(ThisHost().id), None))
    except StoreMissing:
        return Decisions()


def places_of(location: Location) -> Places:
    """Where settings of a place lie. Without a checkout only the directory itself is the project."""
    directory = Path(location.directory)
    return Places(
        directory=directory,
        worktree=directory if location.vcs is None else Path(location.worktree),
        home=directories.home(),
        opencode_config=directories.opencode_config(),
        holdfast_config=directories.config(),
    )


def agent_places(places: Places) -> AgentPlaces:
    """The directories that agents' permissions speak of."""
    data = directories.data()
    return AgentPlaces(
        home=places.home,
        worktree=places.worktree,
        data=data,
        tool_output=data / "tool-output",
        temporary=Path(os.environ.get("TMPDIR") or "/tmp"),  # noqa: S108 - named, not written to
    )

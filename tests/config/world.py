"""A person with a home, and a project in it, for tests of settings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.config import load
from holdfast.config.builtin_agents import AgentPlaces
from holdfast.config.loaded import Loaded
from holdfast.config.places import Places
from holdfast.config.untrusted.well_known import Remote


class World:
    """`home` with both configuration folders, and `project` with a directory `sub` to stand in."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.sub = self.project / "sub"
        self.opencode = self.home / ".config/opencode"
        self.ours = self.home / ".config/holdfast"
        for folder in (self.opencode, self.ours, self.sub):
            folder.mkdir(parents=True)

    @property
    def places(self) -> Places:
        return Places(
            directory=self.sub,
            worktree=self.project,
            home=self.home,
            opencode_config=self.opencode,
            holdfast_config=self.ours,
        )

    @property
    def agent_places(self) -> AgentPlaces:
        data = self.home / "data"
        return AgentPlaces(
            home=self.home,
            worktree=self.project,
            data=data,
            tool_output=data / "tool-output",
            temporary=Path("/tmp/holdfast-1"),
            readable=(self.home / "skills",),
        )

    def load(
        self, *, trusted: Callable[[Path], bool] | bool = True, remote: tuple[Remote, ...] = ()
    ) -> Loaded:
        return load.load(self.places, trusted=trusted, remote=remote)


def write(path: Path, value: Any) -> Path:
    """A file: text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), encoding="utf-8")
    return path

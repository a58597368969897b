"""What loading answers: the effective settings, where each value came from, and what was left out."""

from pathlib import Path
from typing import Any

import msgspec

from holdfast.config.instructions import InstructionSource
from holdfast.config.layers.merge import Origins
from holdfast.config.pins.project_trust import ProjectTrust
from holdfast.schema.config import Config, PermissionConfig
from holdfast.schema.permission import Ruleset


class ConfigFolder(msgspec.Struct, frozen=True):
    """A folder that holds agents, commands and, where it is trusted, skills and plugins."""

    path: Path
    trusted: bool


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one directory."""

    config: Config
    own_permission: PermissionConfig | None = None
    """The permissions without what the project's files say: what the user wrote, and nobody else."""
    value: dict[str, Any]
    """The same as a document: the keys of the files, in their order."""
    origins: Origins
    restrictions: tuple[Ruleset, ...] = ()
    """Rules that may only tighten, each source by itself (see `permission.evaluate.restricted`)."""
    agent_restrictions: dict[str, Ruleset] = {}
    """The same for single agents."""
    foreign_agents: frozenset[str] = frozenset()
    """Agents from a folder that is not trusted, or from a host."""
    foreign_commands: frozenset[str] = frozenset()
    """The same for commands: their texts are never given to a shell, and no file outside the worktree is put
    into them. The caller that expands one asks `distrust.reaches_out` about the result."""
    host_providers: dict[str, str] = {}
    """Providers whose address a host chose, with the host: no key but its own may go there."""
    instructions: tuple[InstructionSource, ...] = ()
    folders: tuple[ConfigFolder, ...] = ()
    warnings: tuple[str, ...] = ()
    """Mistakes that do no harm, a line each."""
    notices: tuple[str, ...] = ()
    """What was left out because the folder is not trusted, or because a host may not decide it."""
    untrusted: Path | None = None
    """The folder that the user would have to trust; None where nothing was left out."""

    untrusted_servers: dict[str, list[str]] = {}
    """MCP servers of folders that are not trusted, each with the words of its command, or its address."""

    trust: ProjectTrust
    """Which folders of the project count, and the bytes of their files as they were compared."""

    def __repr__(self) -> str:
        return f"Loaded({self.config!r})"

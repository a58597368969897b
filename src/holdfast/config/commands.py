"""The commands of a directory: built-in ones, then those of the settings, which may replace them."""

import re

from holdfast.config import builtin_commands
from holdfast.config.loaded import Loaded
from holdfast.schema.command import Command
from holdfast.schema.config import CommandConfig

_NUMBERED = re.compile(r"\$\d+")


def commands(loaded: Loaded) -> dict[str, Command]:
    """Every command by name."""
    given = {**builtin_commands.builtin(), **(loaded.config.command or {})}
    return {name: _command(config.name or name, config) for name, config in given.items()}


def hints(template: str) -> list[str]:
    """The placeholders that a template has: numbered ones in their order, then the whole line."""
    numbered = sorted(set(_NUMBERED.findall(template)), key=lambda found: int(found[1:8]))
    return [*numbered, *(["$ARGUMENTS"] if "$ARGUMENTS" in template else [])]


def _command(name: str, config: CommandConfig) -> Command:
    return Command(
        name=name,
        description=config.description,
        agent=config.agent,
        model=config.model,
        variant=config.variant,
        source="command",
        template=config.template,
        subtask=config.subtask,
        hints=hints(config.template),
    )

"""The checks that the settings name: programs which look at files after an agent has changed them. Pure.

OpenCode's formatters are checks that rewrite. Its built-in ones (`"formatter": true`) do not exist here:
which programs run on a user's files is for the user to say.
"""

from typing import Final

import msgspec

from holdfast.schema.config import Config

TIMEOUT_MS: Final = 30_000


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A program, the files that it is for, and how long it may take."""

    name: str
    command: tuple[str, ...]
    files: tuple[str, ...] = ()
    formats: bool = False
    timeout_ms: int = TIMEOUT_MS
    environment: dict[str, str] = {}


def checks(config: Config) -> tuple[Check, ...]:
    """The checks in force, those that rewrite files first; else in the order of the settings."""
    found = {each.name: each for each in (*_formatters(config), *_checks(config))}
    for name, entry in (config.checks or {}).items():
        if entry.disabled:
            found.pop(name, None)
    return tuple(sorted(found.values(), key=lambda each: not each.formats))


def _checks(config: Config) -> list[Check]:
    return [
        Check(
            name=name,
            command=tuple(entry.command or ()),
            files=tuple(entry.files or ()),
            formats=bool(entry.formats),
            timeout_ms=entry.timeout or TIMEOUT_MS,
            environment=entry.environment or {},
        )
        for name, entry in (config.checks or {}).items()
        if not entry.disabled
    ]


def _formatters(config: Config) -> list[Check]:
    entries = config.formatter if isinstance(config.formatter, dict) else {}
    return [
        Check(
            name=name,
            command=tuple(entry.command),
            files=tuple(f"*{extension}" for extension in entry.extensions or ()),
            formats=True,
            environment=entry.environment or {},
        )
        for name, entry in entries.items()
        if entry.command and not entry.disabled
    ]

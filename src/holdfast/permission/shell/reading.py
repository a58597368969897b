"""What was understood of a shell command."""

import msgspec


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a command does, as rules name it."""

    text: str
    """The simple command as it is written, one space between its words, or `> file` for a file it writes."""
    aliases: tuple[str, ...] = ()
    """The same command in other spellings: without quotes, assignments or the folder of its program. Rules
    may tighten by them, and never loosen.
    """
    always: str | None = None
    """What a user approves who says "always"; None where that would be too much."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a command would do. What is `unclear` may be anything besides."""

    patterns: tuple[Pattern, ...] = ()
    touched: tuple[str, ...] = ()
    """Absolute paths that it reads, writes or goes to; a wildcard ends a path at its folder."""
    mentioned: tuple[str, ...] = ()
    """Absolute paths among the other arguments: they may be paths, or texts that look like one."""
    unclear: str | None = None
    """Why it cannot be said what it does; None where it can."""
    paths_unclear: str | None = None
    """Why it cannot be said which paths it touches."""

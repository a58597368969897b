"""The directory that a command is run in."""

from pathlib import Path

from holdfast.errors import ContextError


def current_directory() -> Path:
    """The current directory, which somebody may have removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ContextError("the current directory was removed; change to another") from None

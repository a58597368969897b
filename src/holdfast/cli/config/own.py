"""The user's own settings, wherever they work: their files and variables, and no project's."""

from holdfast.config.load import load_own
from holdfast.config.places import Places
from holdfast.errors import HoldfastError
from holdfast.person import directories
from holdfast.schema.config import Config


def own_settings() -> Config | None:
    """The settings; None where they cannot be read."""
    try:
        home = directories.home()
        return load_own(
            Places(
                directory=home,
                worktree=home,
                home=home,
                opencode_config=directories.opencode_config(),
                holdfast_config=directories.config(),
            )
        )
    except HoldfastError:
        return None


def own_log_level() -> str | None:
    """The `logLevel` of the user's own settings."""
    settings = own_settings()
    return None if settings is None else settings.log_level

"""Where the user keeps things: our own folders, and OpenCode's, which are only read.

The environment is asked at each call. On Linux the folders are spelled out: the library that knows every
system costs 20 ms of every start.
"""

import os
import sys
from pathlib import Path

from holdfast.errors import ContextError


def home() -> Path:
    """The home directory."""
    try:
        found = Path.home()
    except RuntimeError:
        found = Path()
    if not found.is_absolute():
        raise ContextError("this person has no home directory; set HOME, or name a store with --store")
    return found


def data() -> Path:
    """What Holdfast keeps of the user: the store, credentials, models."""
    if sys.platform != "linux":
        import platformdirs

        return platformdirs.user_data_path("holdfast", appauthor=False)
    return _xdg("XDG_DATA_HOME", ".local/share") / "holdfast"


def config() -> Path:
    """The user's own settings, agents and commands."""
    return _xdg("XDG_CONFIG_HOME", ".config") / "holdfast"


def cache() -> Path:
    """What can be fetched again."""
    if sys.platform != "linux":
        import platformdirs

        return platformdirs.user_cache_path("holdfast", appauthor=False)
    return _xdg("XDG_CACHE_HOME", ".cache") / "holdfast"


def state() -> Path:
    """What is of use on this machine only: the log."""
    if sys.platform != "linux":
        import platformdirs

        return platformdirs.user_state_path("holdfast", appauthor=False)
    return _xdg("XDG_STATE_HOME", ".local/state") / "holdfast"


def opencode_config() -> Path:
    """OpenCode's settings of this user; it uses the same folder on every system."""
    return _xdg("XDG_CONFIG_HOME", ".config") / "opencode"


def opencode_data() -> Path:
    """OpenCode's data of this user, `auth.json` among it."""
    return _xdg("XDG_DATA_HOME", ".local/share") / "opencode"


def _xdg(variable: str, below_home: str) -> Path:
    # A relative value is invalid by the specification of these variables, and ignored.
    base = os.environ.get(variable, "")
    return Path(base) if base.startswith("/") else home() / below_home

"""Switches read from the environment: `HOLDFAST_<NAME>`, else `OPENCODE_<NAME>`.

A project set up for OpenCode works as it is, so its flags are read too. The environment is read at each call,
never kept: a test or an embedding program may change it.
"""

import os
from typing import Final

from holdfast.errors import InvalidInput

CONFIG: Final = "CONFIG"
"""The path of a settings file that is read after those of the project."""

CONFIG_CONTENT: Final = "CONFIG_CONTENT"
"""Settings as JSON, the last layer of all."""

CONFIG_DIR: Final = "CONFIG_DIR"
"""A folder of settings, agents and commands, read after those of the project."""

DISABLE_PROJECT_CONFIG: Final = "DISABLE_PROJECT_CONFIG"
"""Leave out every settings file and folder of the project."""

PERMISSION: Final = "PERMISSION"
"""Permissions as JSON, laid over those of every layer."""

AUTO_SHARE: Final = "AUTO_SHARE"
"""Share each new session."""

DISABLE_AUTOCOMPACT: Final = "DISABLE_AUTOCOMPACT"
"""Compact only when asked."""

DISABLE_PRUNE: Final = "DISABLE_PRUNE"
"""Keep old tool output in the model's view."""

ENABLE_QUESTION_TOOL: Final = "ENABLE_QUESTION_TOOL"
"""Offer questions to the user also in a process to which no user can be attached."""

EXPERIMENTAL_WATCHER: Final = "EXPERIMENTAL_WATCHER"
"""Watch the files of the project."""

EXPERIMENTAL_OUTPUT_TOKEN_MAX: Final = "EXPERIMENTAL_OUTPUT_TOKEN_MAX"  # noqa: S105 - the name of a flag
"""How many tokens a model may answer with, in place of the usual limit."""

FAKE_VCS: Final = "FAKE_VCS"
"""Stands in for the version control that a directory is found to have (tests)."""

SERVER_PASSWORD: Final = "SERVER_PASSWORD"  # noqa: S105 - the name of a flag
"""The password that clients of the server must give."""

SERVER_USERNAME: Final = "SERVER_USERNAME"
"""The name that goes with the password."""

ALL: Final = (
    CONFIG,
    CONFIG_CONTENT,
    CONFIG_DIR,
    DISABLE_PROJECT_CONFIG,
    PERMISSION,
    AUTO_SHARE,
    DISABLE_AUTOCOMPACT,
    DISABLE_PRUNE,
    ENABLE_QUESTION_TOOL,
    EXPERIMENTAL_WATCHER,
    EXPERIMENTAL_OUTPUT_TOKEN_MAX,
    FAKE_VCS,
    SERVER_PASSWORD,
    SERVER_USERNAME,
)

SECRET: Final = frozenset((SERVER_PASSWORD, CONFIG_CONTENT))
"""Flags whose value is never shown."""

_ALIASES: Final = {EXPERIMENTAL_WATCHER: ("EXPERIMENTAL_FILEWATCHER",)}


def flag(name: str) -> str | None:
    """The value of a flag; our own name wins, even when it is set to nothing."""
    variable = variable_of(name)
    return None if variable is None else os.environ[variable]


def variable_of(name: str) -> str | None:
    """The variable of the environment that sets a flag; None where nothing does."""
    names = (name, *_ALIASES.get(name, ()))
    for variable in (f"{owner}_{each}" for owner in ("HOLDFAST", "OPENCODE") for each in names):
        if variable in os.environ:
            return variable
    return None


def enabled(name: str) -> bool:
    """Whether a flag is switched on: ``1`` or ``true``, in any case."""
    return (flag(name) or "").lower() in ("1", "true")


def positive(name: str) -> int | None:
    """A flag that is a whole number above zero; None where it is not set."""
    text = (flag(name) or "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) > 0):
        raise InvalidInput(f"{variable_of(name)} must be a whole number above zero; change or unset it")
    return int(text)


def json_map(name: str) -> dict[str, object] | None:
    """A flag that is a JSON object; None where it is not set."""
    text = (flag(name) or "").strip()
    if not text:
        return None
    import msgspec

    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{variable_of(name)} must be a JSON object; change or unset it") from error

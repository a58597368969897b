"""The PTY Environment: what the program of a terminal finds in its environment.

In this order, the later winning: what commands see of this process's environment, the caller's values, the
overlay of the host, and what a program on a terminal of ours can rely on. Pure.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from holdfast.errors import InvalidInput
from holdfast.location.project import Location
from holdfast.text import quoted

PtyEnvironment = Callable[[Location, str], Awaitable[Mapping[str, str]]]
"""The host's overlay: it gets the Location of the request and the terminal's working directory, resolved."""

FORCED: Final = {"TERM": "xterm-256color", "OPENCODE_TERMINAL": "1", "HOLDFAST_TERMINAL": "1"}
_NAME_SHOWN: Final = 80


async def no_overlay(_location: Location, _cwd: str) -> Mapping[str, str]:
    """The overlay of a host that gives none."""
    return {}


def merged(
    base: Mapping[str, str], caller: Mapping[str, str], overlay: Mapping[str, str], *, cwd: str
) -> dict[str, str]:
    """The environment of a terminal's program."""
    return {**base, "PWD": cwd, **checked(caller), **checked(overlay), **FORCED}


def checked(given: Mapping[str, str]) -> Mapping[str, str]:
    """The variables, if the system takes them; a value is not shown, since it may be a secret."""
    for name, value in given.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise InvalidInput(f"{quoted(repr(name), _NAME_SHOWN)} is no name of a variable")
        if not isinstance(value, str) or "\0" in value:
            raise InvalidInput(
                f"the value of {quoted(name, _NAME_SHOWN)} is not a text without NUL characters"
            )
    return given

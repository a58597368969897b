"""The user's own shell: how a command is started in it, as at a terminal, and how it is started itself."""

import os
import shutil
from pathlib import Path
from typing import Final

_RC: Final = {"bash": ".bashrc", "zsh": ".zshrc"}
_OTHERS: Final = frozenset(("fish", "nu", "elvish", "xonsh", "pwsh", "tcsh", "csh"))
_LOGIN: Final = frozenset(("bash", "zsh", "sh", "dash", "ksh", "mksh", "fish", "nu", "tcsh", "csh"))
"""Shells that take `-l`."""
_SCRIPT: Final = (
    "{ shopt -s expand_aliases; } >/dev/null 2>&1\n"
    'if [ -f "$1" ]; then . "$1" >/dev/null 2>&1 </dev/null; fi\n'
    'cd -- "$2" || exit\n'
    'eval "$3"'
)


def argv(command: str, cwd: Path, home: Path, *, wanted: str | None) -> tuple[str, ...]:
    """The user's shell (the setting `shell`, else $SHELL) as a login shell that has read its own settings.

    A shell that does not take commands as `sh` does is replaced by bash, or sh.
    """
    shell = shutil.which(wanted or os.environ.get("SHELL") or "bash")
    if shell is None or Path(shell).name in _OTHERS:
        shell = shutil.which("bash") or "/bin/sh"
    rc = _RC.get(Path(shell).name)
    return (shell, "-l", "-c", _SCRIPT, shell, "" if rc is None else str(home / rc), str(cwd), command)


def interactive(*, wanted: str | None) -> tuple[str, tuple[str, ...]]:
    """The user's shell (the setting `shell`, else $SHELL) for a terminal; as a login shell if it can be."""
    shell = shutil.which(wanted or os.environ.get("SHELL") or "bash") or shutil.which("bash") or "/bin/sh"
    return shell, ("-l",) if Path(shell).name in _LOGIN else ()

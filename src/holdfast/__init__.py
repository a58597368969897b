"""Holdfast: a durable session runtime for AI coding agents.

Importing the package loads nothing but the version, because every command pays for what stands here.
"""

import sys

from holdfast.version import __version__

TYPE_CHECKING = False  # Type checkers know the name; importing it from typing would cost 6 ms.
if TYPE_CHECKING:
    from holdfast.app import Holdfast, open

__all__ = ["Holdfast", "__version__", "open"]

if sys.platform == "win32":
    raise ImportError("Holdfast does not run on Windows: it needs Linux or macOS (WSL works as Linux).")


def __getattr__(name: str) -> object:
    """Load the runtime when somebody asks for it."""
    if name in ("Holdfast", "open"):
        from holdfast import app

        return getattr(app, name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")

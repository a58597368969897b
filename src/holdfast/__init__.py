"""Holdfast: a durable session runtime for AI coding agents.

Importing the package loads nothing but the version, because every command pays for what stands here.
"""

import sys

from holdfast.version import __version__

__all__ = ["__version__"]

if sys.platform == "win32":
    raise ImportError("Holdfast does not run on Windows: it needs Linux or macOS (WSL works as Linux).")

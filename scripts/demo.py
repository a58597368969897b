"""Show Holdfast at work on a temporary data directory."""

from holdfast import __version__

print(f"Holdfast {__version__} is installed.")

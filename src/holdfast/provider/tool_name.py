"""The name of a tool call, which a model may leave out."""

from typing import Final

UNNAMED: Final = "unnamed"
"""No tool has this name, so the model is told that there is none; an empty one would be refused with it."""


def read(name: object) -> str:
    """The name that the model gave, or a word for none."""
    return name if isinstance(name, str) and name else UNNAMED

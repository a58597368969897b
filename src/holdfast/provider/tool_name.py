"""The name of a tool call, which a model may leave out or make up."""

from typing import Final

from holdfast.provider import call_id

LENGTH_MAX: Final = 64
"""What every wire takes: so many letters, digits, `_` and `-`."""

UNNAMED: Final = "unnamed"
"""No tool has this name, so the model is told that there is none; an empty one would be refused with it."""


def read_name(name: object) -> str:
    """The name that the model gave, or a word for none."""
    return name if isinstance(name, str) and name else UNNAMED


def fitted_name(name: str) -> str:
    """The name as every wire takes it back; one that fits, and so every tool's own, is left alone."""
    return call_id.fitted_id(name or UNNAMED, length_max=LENGTH_MAX, plain=True)

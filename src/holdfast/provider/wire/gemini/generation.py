"""What a generation of Gemini can do that the one before could not, known by the model's name.

A Gemini whose name has no number (`gemini-flash-latest`) is a current one; another family is taken for old.
"""

import re

from holdfast.provider.catalog.model import Model

_NUMBERED = re.compile(r"gemini-(?:[a-z]+-)*(\d+)")


def takes_levels(model: Model) -> bool:
    """Thinking is steered by a level, and not by a number of tokens."""
    return _at_least_3(model)


def wants_signatures(model: Model) -> bool:
    """A call without the signature of the thinking before it is refused."""
    return _at_least_3(model)


def takes_media_in_results(model: Model) -> bool:
    """A function's response may hold images."""
    return _at_least_3(model)


def _at_least_3(model: Model) -> bool:
    name = model.api_id.lower()
    found = _NUMBERED.search(name)
    return int(found[1]) >= 3 if found else "gemini" in name

"""Decides though texts of sources cannot be rendered: the fault of one stops nothing. Pure.

What must stay true: an update that fails gives way to the baseline text; a source that has no text at all for
its value counts as unavailable, so that what the model was told of it stays in force. Each fault has a note.
"""

from collections.abc import Callable
from typing import TypeVar

from holdfast.context.observation import NotRendered, Observation

Decision = TypeVar("Decision")


def rendered(
    observation: Observation, decide: Callable[[Observation], Decision]
) -> tuple[Decision, Observation]:
    """What is decided, and the observation that it was decided from."""
    # It ends: each round takes an update or a source away, and neither is rendered again.
    while True:
        try:
            return decide(observation), observation
        except NotRendered as fault:
            observation = observation.without(fault)

"""A bound on the comparisons of one search: by their number, so that the same input has the same answer."""

STEPS_MAX = 1_000_000
"""About a second."""


class TooCostly(Exception):
    """More would have to be compared than a call may take time for."""


class Effort:
    """What may still be compared."""

    __slots__ = ("left",)

    def __init__(self, steps: int | None = None) -> None:
        self.left = STEPS_MAX if steps is None else steps

    def spend(self, steps: int) -> None:
        """Take note of comparisons before they are made."""
        self.left -= steps
        if self.left < 0:
            raise TooCostly

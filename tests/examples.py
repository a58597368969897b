"""How many examples a property test draws: few and always the same, or many at random with `--long`."""

import os

EXPLORES = bool(os.environ.get("HOLDFAST_EXPLORE"))
TIMES = 40


def examples(count: int, *, times: int = TIMES) -> int:
    """`count` in a default run, many `times` as many where the run explores."""
    return count * times if EXPLORES else count

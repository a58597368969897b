"""Bounds of the engine: nothing waits for ever, nothing grows for ever."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    pass


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the engine: nothing waits for ever, nothing grows for ever."""

    backlog_max: int = 64
    calls_a_turn_max: int = 64
    retries_max: int = 5
    retry_total_ms: int = 10 * 60 * 1_000
    malformed_max: int = 2
    failing_max: int = 12
    """How many turns in a row may have only failed calls."""
    context_wait_ms: int = 30 * 1_000
    """How long a prompt waits for a System Context that cannot be read."""
    answer_wait_ms: int = 10 * 60 * 1_000
    """How long a drain waits for the reply of a user who is attached, before it parks."""

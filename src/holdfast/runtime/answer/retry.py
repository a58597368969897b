"""When a request is retried: bounded in number and total time, and by the provider's `Retry-After`. Pure."""

from holdfast.errors import ProviderError
from holdfast.runtime.engine.limits import Limits

BASE_MS = 2_000
WAIT_MAX_MS = 30_000
JITTER = 0.25


def wait_ms(
    error: ProviderError, attempt: int, *, waited_ms: int, random: float, limits: Limits
) -> int | None:
    """How long to wait before the next attempt (the first failure is attempt 1); None: give up.

    `random` is between 0 and 1. Give up as well if the provider wants a longer pause than the total we wait.
    """
    if not error.retryable or attempt > limits.retries_max:
        return None
    if error.retry_after_ms is not None:
        wait = error.retry_after_ms
    else:
        base = min(BASE_MS * 2 ** (attempt - 1), WAIT_MAX_MS)
        wait = min(round(base * (1 + JITTER * random)), WAIT_MAX_MS)
    return wait if waited_ms + wait <= limits.retry_total_ms else None

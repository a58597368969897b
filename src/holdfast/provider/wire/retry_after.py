"""When a provider wants to be asked again: `retry-after-ms`, then `retry-after` in seconds or as a date.

Without them, the `retryDelay` that Google's services put into the body. A wait is a year at most: a larger
number says no more, and one without bound is no number of milliseconds.
"""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import ceil, isfinite

WAIT_MS_MAX = 365 * 24 * 3_600_000

_DELAY = re.compile(r'"retryDelay"\s*:\s*"([0-9.]{1,12})s"')


def retry_after_ms(headers: dict[str, str], now_ms: int, *, body_text: str = "") -> int | None:
    """Milliseconds from now, or None when there is none. Never negative. Header names are in lower case."""
    if (ms := _number(headers.get("retry-after-ms"))) is not None:
        return _bounded(ms)
    header = headers.get("retry-after")
    if (seconds := _number(header)) is not None:
        return _bounded(seconds * 1000)
    if header is None:
        found = _DELAY.search(body_text)
        delay = _number(found[1]) if found else None
        return None if delay is None else _bounded(delay * 1000)
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0, _bounded(date.timestamp() * 1000 - now_ms))


def _bounded(ms: float) -> int:
    return WAIT_MS_MAX if ms >= WAIT_MS_MAX else ceil(ms)


def _number(text: str | None) -> float | None:
    """A finite number that is not negative; anything else is as if it were not there."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None

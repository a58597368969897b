"""`core/date`: the calendar date, in a time zone that the user names or in that of this machine."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from holdfast.clock import Clock
from holdfast.context.source import Codec, ContextSource
from holdfast.context.sources.look import Warn, in_thread

KEY = "core/date"


def date(clock: Clock, *, zone: str | None, warn: Warn) -> ContextSource[str]:
    """The source; its value is an ISO date. An unknown zone is warned of, and this machine's is used."""

    async def load() -> str:
        named = None if zone is None else await in_thread(lambda: _zone(zone))
        if zone is not None and named is None:
            warn(f"there is no time zone {zone[:60]!r}; the date is that of this machine")
        return today(clock.now_ms(), named)

    return ContextSource(
        key=KEY,
        codec=Codec(str),
        load=load,
        waits=False,
        baseline=lambda now: f"Today's date is {now}.",
        update=lambda _, now: f"The date is now {now}.",
    )


def today(now_ms: int, zone: tzinfo | None) -> str:
    """The date at a moment; without a zone, as this machine's calendar has it."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone).date().isoformat()


def _zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name at all, or a folder of the zone files
        return None

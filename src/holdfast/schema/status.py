"""What a session is doing right now. Derived and live, never stored."""

from holdfast.schema.wire import Count, Wire


class IdleStatus(Wire, frozen=True, kw_only=True, tag_field="type", tag="idle"):
    """Nothing runs."""


class BusyStatus(Wire, frozen=True, kw_only=True, tag_field="type", tag="busy"):
    """A living owner has claimed the session."""


class RetryAction(Wire, frozen=True, kw_only=True):
    """What the user could do about it."""

    reason: str
    provider: str
    title: str
    message: str
    label: str
    link: str | None = None


class RetryStatus(Wire, frozen=True, kw_only=True, tag_field="type", tag="retry"):
    """The provider failed and is tried again at `next` (Unix milliseconds)."""

    attempt: Count
    message: str
    action: RetryAction | None = None
    next: Count


SessionStatus = IdleStatus | BusyStatus | RetryStatus

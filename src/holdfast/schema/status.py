"""What a session is doing right now. Derived and live, never stored."""

from typing import ClassVar, Literal

from holdfast.schema.wire import Count, Wire


class IdleStatus(Wire, frozen=True, kw_only=True, tag_field="type", tag="idle"):
    """Nothing runs."""

    type: ClassVar[Literal["idle"]] = "idle"


class BusyStatus(Wire, frozen=True, kw_only=True, tag_field="type", tag="busy"):
    """A living owner has claimed the session."""

    type: ClassVar[Literal["busy"]] = "busy"


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

    type: ClassVar[Literal["retry"]] = "retry"
    attempt: Count
    message: str
    action: RetryAction | None = None
    next: Count


SessionStatus = IdleStatus | BusyStatus | RetryStatus

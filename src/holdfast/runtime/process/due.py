"""What is left to be done for a session when its work here ended before it was done."""

import msgspec


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """An interrupt that is not settled yet, and then a wake that nothing has begun to work on."""

    stop: int | None = None
    """The number at which the session was interrupted (see `RunningSession.asked_at`); None: it was not."""
    stopped_elsewhere: bool = False
    again: bool = False
    force: bool = False
    answered: bool = False


class CutOff(msgspec.Struct, frozen=True):
    """Work that was under way: the `recovery` setting decides whether it goes on."""

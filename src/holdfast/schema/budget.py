"""What a tree of sessions may spend, and what it has spent: kept on its root. Ours; no client knows it."""

from typing import Literal

from holdfast.schema.wire import Count, Num, Wire


class Budget(Wire, frozen=True, kw_only=True):
    """Limits over a whole tree: US dollars, tokens, milliseconds of work. None is no limit.

    Time is counted while any turn of the tree is under way: of turns side by side on one machine, once. A
    turn that another machine runs counts when it ends.
    """

    cost: Num | None = None
    tokens: Count | None = None
    time_ms: Count | None = None
    unknown_price: Literal["stop", "allow"] | None = None
    """With a limit in money, a model without a known price stops the work unless this allows it."""


class Reserved(Wire, frozen=True, kw_only=True):
    """What a turn under way may use at most."""

    cost: Num
    tokens: Count
    sent_cost: Num | None = None
    sent: Count | None = None
    """What the request alone takes: that is gone when the answer never comes."""
    unknown: bool | None = None
    """Its model has no known price."""
    session: str | None = None
    """Whose turn it is: once no owner runs that session any more, there is none."""
    boot: str | None = None
    """The boot of the machine that holds it: `since` and `until` are read from that boot's clock, which
    cannot be set."""
    since: Count | None = None
    """When the turn began."""
    until: Count | None = None
    """For what no recovery looks after: the time from which it no longer counts."""


class Spent(Wire, frozen=True, kw_only=True):
    """What the tree has used: it never falls, whatever is removed or reverted."""

    cost: Num
    tokens: Count
    time_ms: Count
    unknown: bool | None = None
    """Some of it had no known price."""
    reserved: dict[str, Reserved]
    """By the assistant message of the turn."""


NOTHING = Spent(cost=0, tokens=0, time_ms=0, reserved={})

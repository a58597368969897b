"""Owners: the processes that run sessions, and when one of them counts as dead.

One lease a process, not one a session: a renewal is one small write however many sessions run. Pure
rules over values; how a process is looked up is `host.py`'s business.
"""

import msgspec

LEASE_MS = 15_000
RENEW_MS = 5_000


class Owner(msgspec.Struct, frozen=True):
    """A process that may claim sessions."""

    id: str
    host: str
    boot: str
    pid: int
    pid_namespace: str
    started: str
    """When the process started, in the kernel's words: a pid alone may have been given out again."""
    placements: tuple[str, ...]
    format: int = 1


class Lease(msgspec.Struct, frozen=True):
    """An owner as a store that lives on one machine keeps it.

    The deadline is kept by two clocks. Time since boot cannot be set, so it judges between processes of one
    boot; the wall clock judges only owners on another machine (a network file system).
    """

    owner: Owner
    deadline_boot_ms: int
    deadline_wall_ms: int
    dead: bool = False


def expired(lease: Lease, *, boot: str, boot_ms: int, wall_ms: int) -> bool:
    """Whether the owner missed its deadline."""
    if lease.owner.boot == boot:
        return boot_ms > lease.deadline_boot_ms
    return wall_ms > lease.deadline_wall_ms


STEP_MS = 1_000
"""A clock that moves by more than this against the time since boot was set."""


LOOK_MS = RENEW_MS * 4 // 5
"""Looks come with renewals, the first a little after the registration: two of them are this far apart."""


class Sightings:
    """What this process has seen of the deadlines of others, by its own time since boot.

    The store's clock may be set, and then every living owner looks late at once. So an owner counts as silent
    when its deadline was seen unchanged for a whole lease; or from one look to the next, if the store's clock
    went as ours did meanwhile, and then only if it is late by that clock too.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}
        self._offset_ms: int | None = None
        self._steady_ms = 0

    def note(self, deadlines: dict[str, int], *, store_ms: int, boot_ms: int) -> None:
        """These are the deadlines of all living owners, at this moment by either clock."""
        offset_ms = store_ms - boot_ms
        if self._offset_ms is None or abs(offset_ms - self._offset_ms) > STEP_MS:
            self._steady_ms = boot_ms
        self._offset_ms = offset_ms
        self._seen = {
            id: (deadline, self._since(id, deadline, boot_ms)) for id, deadline in deadlines.items()
        }

    def _since(self, id: str, deadline: int, boot_ms: int) -> int:
        known, since_ms = self._seen.get(id, (None, boot_ms))
        return since_ms if known == deadline else boot_ms

    def silent(self, *, store_ms: int, boot_ms: int) -> dict[str, int]:
        """Owners that may be buried if their deadline is still this one."""
        found = {}
        for id, (deadline, since_ms) in self._seen.items():
            for_ms = boot_ms - since_ms
            is_late = deadline < store_ms and for_ms >= LOOK_MS and since_ms >= self._steady_ms
            if for_ms > LEASE_MS or is_late:
                found[id] = deadline
        return found


class Renewals:
    """How long this process's own renewals have been unbroken: the licence to bury others.

    After an outage longer than the lease every owner is late. The first one back must not bury the
    others, so burial waits until its own renewals have held for one interval.
    """

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}
        self._last_ms: dict[str, int] = {}

    def note(self, owner: str, now_ms: int) -> None:
        """A renewal (or the registration) succeeded at this moment."""
        last_ms = self._last_ms.get(owner)
        if last_ms is None or now_ms - last_ms > LEASE_MS:
            self._since_ms[owner] = now_ms
        self._last_ms[owner] = now_ms

    def forget(self, owner: str) -> None:
        """The owner retired."""
        self._since_ms.pop(owner, None)
        self._last_ms.pop(owner, None)

    def may_bury(self, owner: str, now_ms: int) -> bool:
        """Whether the owner's renewals have been unbroken for one interval, up to now."""
        since_ms, last_ms = self._since_ms.get(owner), self._last_ms.get(owner)
        if since_ms is None or last_ms is None or now_ms - last_ms > LEASE_MS:
            return False
        return last_ms - since_ms >= RENEW_MS

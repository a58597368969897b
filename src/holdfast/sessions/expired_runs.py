"""Removes the sessions of single agent runs that have not been used for a week.

What must stay true: one that runs stays, and so does one that was prompted since, however late: the store
decides both in the transaction that removes. Each is a transaction of its own, with a pause between two, so
that commits of running sessions do not wait for all of them.
"""

from typing import Final

import anyio

from holdfast.clock import Clock
from holdfast.errors import Conflict, NotFound, Refused
from holdfast.store.base import Store
from holdfast.store.query import SessionQuery

KEPT_MS: Final = 7 * 24 * 3600 * 1000
PAUSE_S: Final = 0.02
_PAGE: Final = 100


async def prune(store: Store, clock: Clock, *, pause_s: float = PAUSE_S) -> int:
    """Remove those whose time is over; answers how many. What cannot go now waits for the next time."""
    idle_since_ms = clock.now_ms() - KEPT_MS
    removed, cursor = 0, None
    while True:
        query = SessionQuery(
            agent_runs=True, archived=None, updated_to=idle_since_ms, limit=_PAGE, cursor=cursor
        )
        page = await store.sessions(query)
        for record in page.sessions:
            if record.busy:
                continue
            try:
                removed += len(await store.erase(record.id, idle_since_ms=idle_since_ms))
            except (Refused, Conflict, NotFound):
                continue  # It runs, or was used just now, or another process has removed it.
            await anyio.sleep(pause_s)
        if (cursor := page.next) is None:
            return removed

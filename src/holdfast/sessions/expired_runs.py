"""Removes sessions of agent runs that were not used for a week.

What must stay true: a session that runs, or was prompted since, is kept, however late the prompt came: the
store decides both in the transaction that removes it. Each removal is a transaction of its own, with a pause
in between, so that running sessions do not wait for all of them.
"""

from typing import Final

import anyio

from holdfast.clock import Clock
from holdfast.errors import Conflict, NotFound, Refused
from holdfast.sessions import erase
from holdfast.sessions.erase import Traces
from holdfast.store.base import Store
from holdfast.store.query import SessionQuery

KEPT_MS: Final = 7 * 24 * 3600 * 1000
PAUSE_S: Final = 0.02
_PAGE: Final = 100


async def prune(store: Store, clock: Clock, *, pause_s: float = PAUSE_S) -> int:
    """Remove the expired ones and return how many. What cannot be removed now is tried at the next call."""
    idle_since_ms = clock.now_ms() - KEPT_MS
    removed, cursor = 0, None
    gone: list[Traces] = []
    while True:
        query = SessionQuery(
            agent_runs=True, archived=None, updated_to=idle_since_ms, limit=_PAGE, cursor=cursor
        )
        page = await store.sessions(query)
        for record in page.sessions:
            if record.busy:
                continue
            try:
                left = await erase.traces(store, [record.id])
                removed += len(await store.erase(record.id, idle_since_ms=idle_since_ms))
                gone.append(left)
            except (Refused, Conflict, NotFound):
                continue  # It runs, was used just now, or another process has removed it.
            await anyio.sleep(pause_s)
        if (cursor := page.next) is None:
            break
    await erase.forget(store, erase.together(gone))
    return removed

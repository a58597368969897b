"""What every verb of this room works with."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import msgspec

from holdfast.clock import Clock
from holdfast.errors import Conflict, InvariantBroken, NotFound, Refused
from holdfast.schema import stored
from holdfast.schema.ids import Mint
from holdfast.schema.session import Session
from holdfast.schema.wire import checked
from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.host import Host
from holdfast.store.record import SessionRecord

T = TypeVar("T")

TRIES = 30
"""How often a read-modify-write begins anew when somebody else wrote in between."""

PAUSE_MAX_S = 0.05


class StoreAccess(msgspec.Struct, frozen=True):
    """The store, and what is needed to make records."""

    store: Store
    clock: Clock
    mint: Mint
    host: Host


async def found(room: StoreAccess, session: str) -> SessionRecord:
    """The session's record, or `NotFound`."""
    record = await room.store.session(session)
    if record is None:
        raise NotFound(
            f"session {session[:60]} does not exist; `holdfast session list --all` shows those that do"
        )
    return record


async def idle(room: StoreAccess, session: str) -> SessionRecord:
    """The session's record, or `Refused` while it runs."""
    record = await found(room, session)
    if record.busy:
        raise Refused(f"session {session} is busy; wait until it is idle, or interrupt it")
    return record


def put_session(session: Session) -> Put:
    """The change that writes a session; one that could not be read back is refused."""
    return Put(session.id, "session", session.id, stored.strip("session", checked(session, "the session")))


async def again(work: Callable[[], Awaitable[T]]) -> T:
    """Do a read-modify-write; begin anew, a bounded number of times, when it met another writer."""
    for attempt in range(TRIES):
        try:
            return await work()
        except Conflict:
            if attempt == TRIES - 1:
                raise
            # Random pauses that grow let many writers past each other.
            await anyio.sleep(random.uniform(0, min(PAUSE_MAX_S, 0.001 * 2**attempt)))  # noqa: S311
    raise InvariantBroken("a loop that returns or raises came to its end")

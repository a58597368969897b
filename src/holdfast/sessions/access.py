"""The store access that every function of this room takes, and how it finds a session."""

import msgspec

from holdfast.clock import Clock
from holdfast.errors import NotFound, Refused
from holdfast.schema.ids import Mint
from holdfast.schema.session import Session
from holdfast.schema.wire import checked
from holdfast.store import reverted
from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.host import Host
from holdfast.store.put import put
from holdfast.store.record import SessionRecord


class StoreAccess(msgspec.Struct, frozen=True):
    """The store, and what is needed to make records."""

    store: Store
    clock: Clock
    mint: Mint
    host: Host


async def require_session(access: StoreAccess, session: str) -> SessionRecord:
    """The session's record, or `NotFound`."""
    record = await access.store.session(session)
    if record is None:
        raise NotFound(
            f"session {session[:60]} does not exist; `holdfast session list --all` shows those that do"
        )
    return record


async def require_idle(access: StoreAccess, session: str) -> SessionRecord:
    """The session's record; `Refused` while a process runs the session, or a revert is staged in it."""
    record = await require_session(access, session)
    if record.busy:
        raise Refused(f"session {session} is busy; wait until it is idle, or interrupt it")
    if reverted.point_in(record.data) is not None:
        raise Refused(
            f"session {session} has a staged revert; undo it with `unrevert`, or prompt the session"
        )
    return record


def put_session(session: Session) -> Put:
    """The change that writes a session; one that could not be read back is refused."""
    return put(checked(session, "the session"))

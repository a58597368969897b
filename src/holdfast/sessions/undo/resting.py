"""Whether a session rests, so that its files and messages can be taken back."""

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.errors import Refused
from holdfast.runtime.engine.patience import PatientStore
from holdfast.runtime.history.work import is_settled
from holdfast.schema.session import Session
from holdfast.schema.stored import Kind, Mark
from holdfast.sessions import read
from holdfast.sessions.access import StoreAccess, require_session
from holdfast.store.batch import Expectation, Settled, Unchanged, Unclaimed
from holdfast.store.record import SessionRecord


def patient(access: StoreAccess) -> StoreAccess:
    """Access that waits while the store is unreachable: files that are written want their record."""
    return replace(access, store=PatientStore(access.store, lambda: None))


async def require_resting(access: StoreAccess, session: str) -> tuple[SessionRecord, Sequence[Session]]:
    """The session and all below it; `Refused` while one of them works, or this one is left unfinished."""
    record = await require_session(access, session)
    below = await read.children(access, session, deep=True)
    for each in (record, *[await require_session(access, child.id) for child in below]):
        if each.busy:
            raise Refused(f"session {each.id} is busy; wait until it is idle, or interrupt it")
    if await access.store.select("prompt", session=session, mark=Mark.OPEN):
        raise Refused(f"a prompt waits in session {session}; `holdfast session resume {session}` first")
    kinds: tuple[Kind, ...] = ("request", "message", "part")
    for kind in kinds:
        for left in await access.store.select(kind, session=session, mark=Mark.OPEN):
            if kind != "part" or not is_settled(left.value()):
                raise Refused(
                    f"session {session} was left unfinished; `holdfast session abort {session}` first"
                )
    return record, below


def expected(record: SessionRecord) -> tuple[Expectation, ...]:
    """What a commit about a resting session expects: it still rests, and is as it was read."""
    return (
        Unchanged(record.id, "session", record.id, record.seq),
        Unclaimed(record.id),
        Settled(record.id, "prompt"),
    )

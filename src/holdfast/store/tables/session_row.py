"""A session's row as a batch finds it, and what must hold of it before anything is written."""

import msgspec

from holdfast.errors import LeaseLost, NotFound
from holdfast.store.batch import Fence
from holdfast.store.columns import SessionColumns


class SessionRow(msgspec.Struct):
    """A session as the batch finds it, and what the batch makes of it."""

    n: int
    id: str
    head: int
    top: str
    owner: str | None
    fence: int
    live: bool
    touched: bool = False


def living_row(rows: dict[str, SessionRow | None], session: str) -> SessionRow:
    """The row of a session that must be there."""
    row = rows[session]
    if row is None or not row.live:
        raise NotFound(f"session {session} does not exist")
    return row


def check_fence(row: SessionRow | None, fence: Fence) -> None:
    """Refuse a runner whose claim is gone: the owner and the number must both be the session's."""
    if row is None or row.owner != fence.owner or row.fence != fence.number:
        raise LeaseLost(
            f"session {fence.session} was taken over or given back (fence {fence.number}); stop it"
        )


def session_values(columns: SessionColumns) -> tuple[object, ...]:
    """The columns of a session row, in the order in which both statements name them."""
    return (
        columns.project,
        columns.directory,
        columns.path,
        columns.slug,
        columns.title,
        columns.placement,
        columns.updated,
        columns.archived,
        columns.agent_run,
        columns.parent,
    )

"""Removes whole sessions with everything below them."""

from typing import TYPE_CHECKING

from holdfast.errors import Conflict, NotFound, Refused
from holdfast.store.batch import Fence
from holdfast.store.tables.session_row import SessionRow, check_fence

if TYPE_CHECKING:
    from holdfast.store.tables.shell import Writes

_TREE = """
WITH RECURSIVE tree(id, depth) AS (
  SELECT id, 0 FROM session WHERE id=? AND scope=0 AND data IS NOT NULL
  UNION SELECT s.id, depth + 1 FROM session s JOIN tree ON s.parent = tree.id WHERE s.data IS NOT NULL)
SELECT id FROM tree ORDER BY depth DESC
"""


def erase(
    connection: "Writes", session: str, fence: Fence | None, idle_since_ms: int | None = None
) -> list[str]:
    """See the port. A child is never left without its parent: the deepest go first, in one transaction."""
    rows: list[SessionRow] = []
    for (id,) in connection.rows(_TREE, session):
        row = connection.writer.row(id)
        assert row is not None, "the tree was read in this transaction"
        rows.append(row)
    if not rows:
        raise NotFound(f"session {session} does not exist")
    if fence is not None:
        check_fence(connection.writer.row(fence.session), fence)
    for row in rows:
        if row.owner is None or (fence is not None and row.owner == fence.owner):
            continue
        if connection.leases.living(row.owner):
            raise Refused(f"session {row.id} is busy: an owner runs it; interrupt it, then remove {session}")
    if idle_since_ms is not None:
        for row in rows:
            if connection.rows("SELECT 1 FROM session WHERE n=? AND updated>?", row.n, idle_since_ms):
                raise Conflict(f"session {row.id} was used since; it stays, and so does {session}")
    connection.writer.erase(rows)
    return [row.id for row in rows]

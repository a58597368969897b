"""Forgets tombstones, and the owners that are long dead."""

from holdfast.store.tables.connection import Connection


def sweep(db: Connection, before_ms: int) -> None:
    """Forget tombstones of before a moment; cursors from before them end in a resync."""
    horizon = db.execute(
        "SELECT max(seq) FROM (SELECT max(seq) AS seq FROM record WHERE data IS NULL AND at<?1 "
        "UNION ALL SELECT max(seq) FROM session WHERE data IS NULL AND at<?1)",
        (before_ms,),
    ).get
    db.execute("DELETE FROM owner WHERE dead=1 AND deadline_wall<?", (before_ms,))
    if horizon is None:
        return
    db.execute("DELETE FROM record WHERE data IS NULL AND at<?", (before_ms,))
    db.execute("DELETE FROM session WHERE data IS NULL AND at<?", (before_ms,))
    # Never lower: after the clock was set back, what was removed last need not be what is swept last.
    db.execute("UPDATE store SET value=?1 WHERE key='horizon' AND CAST(value AS INTEGER)<?1", (horizon,))

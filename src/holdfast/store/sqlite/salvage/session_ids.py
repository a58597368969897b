"""Which session has which id, where damage gave one id to two. Pure."""

import msgspec

from holdfast.store.sqlite.salvage.rows import Row


def owners(sessions: dict[int, list[Row]], names: dict[int, str]) -> dict[str, int]:
    """The number of the session that each id belongs to: the one whose row and index agree, then one that
    lives, then one that was removed, then one that only the index knows.
    """
    rows = [states[0] for states in sessions.values()]
    found: dict[str, int] = {}
    for row in (
        *(row for row in rows if names.get(row.key) == row.id),
        *(row for row in rows if not row.removed),
        *rows,
    ):
        found.setdefault(row.id, row.key)
    for n, id in names.items():
        found.setdefault(id, n)
    return found


def rehomed(sessions: dict[int, list[Row]], names: dict[int, str]) -> dict[int, list[Row]]:
    """The rows of sessions by number. A row whose own number no index knows, and whose id the index gives to
    a number without a row, belongs there: its key was damaged.
    """
    numbers = {id: n for n, id in names.items()}
    found: dict[int, list[Row]] = {}
    for n, rows in sessions.items():
        named = numbers.get(rows[0].id, n)
        home = named if n not in names and named not in sessions else n
        found.setdefault(home, []).extend(
            row if home == n else msgspec.structs.replace(row, key=home, session=home) for row in rows
        )
    return found

"""The numbers of the rows that were chosen: each is given once. Pure.

Damage can change the number of a row into that of another. The one that it belongs to keeps it, and the other
gets a new one, above all that were found: no row goes for the sake of its number.
"""

import msgspec

from holdfast.store.sqlite.salvage.harvest import Harvest
from holdfast.store.sqlite.salvage.rows import Row


class Numbers:
    """Gives numbers out."""

    def __init__(self, found: Harvest) -> None:
        rows = [row for kinds in (found.live, found.stray) for each in kinds.values() for row in each]
        self._top = 1 + max((max(row.seq, row.head) for row in rows), default=0)
        self._taken: set[int] = set()
        # What was never written again has its position for a number; of the others an index knows it.
        self._meant = {found.moved.get(row.key, row.position): _name(row) for row in found.live["record"]}
        for row in found.live["session"]:
            self._meant.setdefault(row.seq, _name(row))

    def new(self) -> int:
        """A number above all others."""
        self._top += 1
        return self._top

    def numbered(self, row: Row) -> Row:
        """The row with its own number, or with a new one if that is another's."""
        if row.seq in self._taken or self._meant.get(row.seq, _name(row)) != _name(row):
            return msgspec.structs.replace(row, seq=self.new())
        self._taken.add(row.seq)
        return row


def _name(row: Row) -> tuple[int, int]:
    """What a row is known by: a record by its key, a session, whose key may be wrong, by its place."""
    return (0, row.key) if row.kind else (row.page, row.offset)

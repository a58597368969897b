"""A connection as our statements see it: what a column holds is fixed by the tables, not by static types."""

from typing import Any, Protocol


class Connection(Protocol):
    """The part of `apsw.Connection` that statements need; rows are tuples of whatever was selected."""

    def execute(self, statements: str, bindings: Any = None, /) -> Any: ...

    def executemany(self, statements: str, bindings: Any, /) -> Any: ...

    def last_insert_rowid(self) -> int: ...

    def changes(self) -> int: ...

    def total_changes(self) -> int: ...


def set_pragmas(db: Connection, *settings: str) -> None:
    """Apply settings one by one: a statement that answers with a row would end a list of them."""
    for setting in settings:
        db.execute(f"PRAGMA {setting}").fetchall()

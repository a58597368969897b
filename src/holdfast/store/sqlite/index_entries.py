"""Entries of indexes that no row has: the sign of a write of one page that the disk lost.

SQLite's own check asks for an entry for each row, and counts them. An index of some rows only is not counted,
and the former state of a row may expect no entry there: so its check finds nothing wrong where a record has
its former bytes, though `record_moved` has its latest number.
"""

from holdfast.schema.stored import KINDS
from holdfast.store.examining import Examining
from holdfast.store.tables.connection import Connection

FOUND_MAX = 20
_KEYS = {"record": "k", "session": "n"}
_PARTIAL = """
SELECT i.name, t.name, s.sql FROM sqlite_schema t JOIN pragma_index_list(t.name) i ON i.partial
JOIN sqlite_schema s ON s.name=i.name WHERE t.type='table' AND t.name IN ('record', 'session') ORDER BY i.name
"""


def without_rows(db: Connection, examining: Examining) -> list[str]:
    """What entries of indexes name though their table has it otherwise; the first of them."""
    found: list[str] = []
    for index, table, sql in db.execute(_PARTIAL).fetchall():
        examining.at(f"the index {index}")
        condition = sql.partition(" WHERE ")[2]
        for (key,) in db.execute(_query(db, index, table, condition), (FOUND_MAX - len(found),)).fetchall():
            found.append(f"{_named(db, table, key)} is not as index {index} has it")
    return found


def _query(db: Connection, index: str, table: str, condition: str) -> str:
    key = _KEYS[table]
    columns = [name for (name,) in db.execute("SELECT name FROM pragma_index_info(?)", (index,))]
    same = " AND ".join(f"r.{name} IS i.{name}" for name in columns)
    # Each entry once, and its row by its key. Without the hints SQLite might ask the index about itself.
    return (
        f"SELECT i.{key} FROM {table} i INDEXED BY {index} WHERE {condition} AND NOT EXISTS "
        f"(SELECT 1 FROM {table} r NOT INDEXED WHERE r.{key}=i.{key} AND {same} AND {condition}) LIMIT ?"
    )


def _named(db: Connection, table: str, key: int) -> str:
    if table == "session":
        id = db.execute("SELECT id FROM session WHERE n=?", (key,)).get
        return f"session {id or key}"
    found = db.execute(
        "SELECT r.kind, r.id, s.id FROM record r LEFT JOIN session s ON s.n=r.session WHERE r.k=?", (key,)
    ).fetchall()
    for kind, id, session in found:
        return f"{KINDS[kind]} {id} of {session}"
    return f"record {key}"

"""What a transaction did to the index beside putting records: noted by temporary triggers.

Claims end, owners are buried, messages take their parts along, tombstones are swept: each is one statement
on the tables that says nothing about files. The triggers fire only there: an ordinary append pays nothing.
"""

import msgspec

from holdfast.schema.stored import KINDS, Kind
from holdfast.store.tables.connection import Connection

HORIZON_RISEN = -1
ASIDE = "~"
"""What the index keeps for `data` of a record that lies aside of its natural place (see `layout`)."""

_TRIGGERS = f"""
CREATE TEMP TABLE touched(n INTEGER PRIMARY KEY);
CREATE TEMP TABLE moved(id TEXT, project TEXT);
CREATE TEMP TABLE dropped(
  k INTEGER, session TEXT, kind INTEGER, id TEXT, parent INTEGER, message TEXT, data TEXT);
CREATE TEMP TABLE exhumed(id TEXT);
CREATE TEMP TABLE leased(id TEXT);
CREATE TEMP TRIGGER made AFTER INSERT ON main.session BEGIN
  INSERT OR IGNORE INTO touched VALUES (new.n); END;
CREATE TEMP TRIGGER claimed AFTER UPDATE OF owner, fence ON main.session BEGIN
  INSERT OR IGNORE INTO touched VALUES (new.n); END;
CREATE TEMP TRIGGER left AFTER UPDATE OF project ON main.session WHEN old.project IS NOT new.project BEGIN
  INSERT INTO moved VALUES (old.id, old.project); END;
CREATE TEMP TRIGGER erased AFTER UPDATE OF data ON main.session WHEN new.data IS NULL BEGIN
  INSERT INTO moved VALUES (old.id, old.project); END;
CREATE TEMP TRIGGER exhume AFTER DELETE ON main.session BEGIN INSERT INTO exhumed VALUES (old.id); END;
CREATE TEMP TRIGGER kept AFTER UPDATE OF data ON main.record WHEN old.data='{ASIDE}' AND new.data='' BEGIN
  UPDATE record SET data='{ASIDE}' WHERE k=new.k; END;
CREATE TEMP TRIGGER removed AFTER UPDATE OF data ON main.record WHEN new.data IS NULL BEGIN
  INSERT INTO dropped VALUES (old.k, (SELECT id FROM session WHERE n=old.session), old.kind, old.id,
    old.parent, (SELECT id FROM record WHERE k=old.parent), old.data);
  INSERT OR IGNORE INTO touched VALUES (old.session); END;
CREATE TEMP TRIGGER deleted AFTER DELETE ON main.record BEGIN
  INSERT INTO dropped VALUES (old.k, (SELECT id FROM session WHERE n=old.session), old.kind, old.id,
    old.parent, (SELECT id FROM record WHERE k=old.parent), old.data);
  INSERT OR IGNORE INTO touched VALUES (old.session); END;
CREATE TEMP TRIGGER leased_new AFTER INSERT ON main.owner BEGIN INSERT INTO leased VALUES (new.id); END;
CREATE TEMP TRIGGER leased_dead AFTER UPDATE OF dead ON main.owner BEGIN
  INSERT INTO leased VALUES (new.id); END;
CREATE TEMP TRIGGER leased_gone AFTER DELETE ON main.owner BEGIN INSERT INTO leased VALUES (old.id); END;
CREATE TEMP TRIGGER horizon AFTER UPDATE ON main.store WHEN new.key='horizon' BEGIN
  INSERT OR IGNORE INTO touched VALUES ({HORIZON_RISEN}); END;
"""

_ANY = (
    "SELECT EXISTS(SELECT 1 FROM touched) OR EXISTS(SELECT 1 FROM moved) OR EXISTS(SELECT 1 FROM dropped) "
    "OR EXISTS(SELECT 1 FROM exhumed) OR EXISTS(SELECT 1 FROM leased)"
)

_DROPPED = """
SELECT d.k & 1099511627775, d.session, d.kind, d.id,
  coalesce(d.message, (SELECT id FROM dropped q WHERE q.k = d.parent LIMIT 1)), d.data FROM dropped d
"""
"""An erased session loses its messages before their parts, so a part's message may be among the dropped."""


class Dropped(msgspec.Struct, frozen=True):
    """A row that is no longer what it was: a record that was removed, or a tombstone that was taken away."""

    session: str
    kind: Kind
    id: str
    parent: str | None
    position: int
    live: bool
    aside: bool


class Traces(msgspec.Struct, frozen=True):
    """Everything noted in one transaction."""

    touched: list[int]
    moved: list[tuple[str, str]]
    dropped: list[Dropped]
    exhumed: list[str]
    leased: list[str]


class Trace:
    """The triggers of one writing connection."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        db.execute(_TRIGGERS)

    def read(self) -> Traces | None:
        """What was noted, which is then forgotten; None when nothing was."""
        if not self._db.execute(_ANY).get:
            return None
        rows = self._db.execute
        dropped = [
            Dropped(session, KINDS[kind], id, parent, position, data is not None, data == ASIDE)
            for position, session, kind, id, parent, data in rows(_DROPPED)
        ]
        traces = Traces(
            [n for (n,) in rows("SELECT n FROM touched")],
            [(id, project) for id, project in rows("SELECT id, project FROM moved") if project is not None],
            dropped,
            [id for (id,) in rows("SELECT DISTINCT id FROM exhumed")],
            [id for (id,) in rows("SELECT DISTINCT id FROM leased")],
        )
        for name in ("touched", "moved", "dropped", "exhumed", "leased"):
            rows(f"DELETE FROM {name}")
        return traces

"""The tables, as SQL. docs/format.md describes them.

`record.k` is `session.n << 40 | position`: a session's records lie together, in the order of their
creation, and a parent always has a smaller key than its children.
"""

POSITION_BITS = 40
POSITION_MASK = (1 << POSITION_BITS) - 1

CREATE = """
CREATE TABLE store(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE session(
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  scope INTEGER NOT NULL DEFAULT 0,      -- 0 session, 1 project, 2 host
  position INTEGER NOT NULL,
  seq INTEGER NOT NULL,                  -- of its own record
  head INTEGER NOT NULL,                 -- the latest number of any of its records
  top TEXT NOT NULL DEFAULT '',          -- the greatest message or part id body
  owner TEXT,                            -- who runs it
  fence INTEGER NOT NULL DEFAULT 0,      -- rises with each claim
  project TEXT, directory TEXT, path TEXT, parent TEXT, slug TEXT, title TEXT, placement TEXT,
  updated INTEGER, archived REAL,
  agent_run TEXT,                        -- the agent of a session that was made for one run of it
  at INTEGER,                            -- when it was removed; of one made anew, when its former life was
  data TEXT                              -- NULL: a tombstone
);
CREATE INDEX session_head ON session(head);
CREATE INDEX session_updated ON session(updated, n) WHERE updated IS NOT NULL;
CREATE INDEX session_project ON session(project, updated, n) WHERE project IS NOT NULL;
CREATE INDEX session_run ON session(updated, n) WHERE agent_run IS NOT NULL;
CREATE INDEX session_parent ON session(parent) WHERE parent IS NOT NULL;
CREATE INDEX session_owner ON session(owner) WHERE owner IS NOT NULL;
CREATE INDEX session_removed ON session(seq) WHERE data IS NULL;

CREATE TABLE record(
  k INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  mark INTEGER NOT NULL,                 -- 1 open, 2 a compaction's summary, 3 a system message
  seq INTEGER NOT NULL,
  place INTEGER,                         -- NULL: its position
  parent INTEGER,                        -- the k of a part's message
  at INTEGER,                            -- when it was removed; of one made anew, when its former life was
  id TEXT NOT NULL,
  data TEXT                              -- NULL: a tombstone
);
CREATE UNIQUE INDEX record_id ON record(session, id, kind);
CREATE INDEX record_place ON record(session, place) WHERE place IS NOT NULL;
CREATE INDEX record_parent ON record(parent) WHERE parent IS NOT NULL;
CREATE INDEX record_mark ON record(mark, kind, session) WHERE mark > 0;
CREATE INDEX record_scoped ON record(kind) WHERE kind > 8;
CREATE INDEX record_removed ON record(seq) WHERE data IS NULL;

CREATE TABLE owner(
  id TEXT PRIMARY KEY,
  data TEXT NOT NULL,
  deadline_boot INTEGER NOT NULL,
  deadline_wall INTEGER NOT NULL,
  dead INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE quarantine(
  at INTEGER NOT NULL, reason TEXT NOT NULL, session TEXT, kind INTEGER, id TEXT, data TEXT);
"""

LATER = """
DROP INDEX IF EXISTS record_seq;
CREATE INDEX IF NOT EXISTS record_moved ON record(session, seq) WHERE seq <> (k & 1099511627775);
CREATE INDEX IF NOT EXISTS record_few ON record(session, kind) WHERE kind > 2;
CREATE INDEX IF NOT EXISTS session_directory ON session(directory, updated, n) WHERE directory IS NOT NULL;
CREATE INDEX IF NOT EXISTS session_slug ON session(slug) WHERE slug IS NOT NULL;
"""
"""Indexes that the first stores of format 1 did not have. An index is no content, so it is made where it is
missed and the format stays.

`record_moved`: only what changed after its creation, so that an append touches no page of it, and is found by
its key. `record_few`: what is neither message nor part, of which a session has few.
"""

LATER_NAMES = ("record_moved", "record_few", "session_directory", "session_slug")

VIEWS = """
CREATE VIEW sessions AS SELECT id, project, directory, title, parent,
  datetime(updated / 1000, 'unixepoch') AS updated, owner, data
  FROM session WHERE scope = 0 AND data IS NOT NULL;
CREATE VIEW messages AS SELECT s.id AS session, r.id, r.k & 1099511627775 AS position, r.seq, r.data
  FROM record r JOIN session s ON s.n = r.session WHERE r.kind = 1 AND r.data IS NOT NULL;
CREATE VIEW parts AS
  SELECT s.id AS session, m.id AS message, r.id, r.k & 1099511627775 AS position, r.seq, r.data
  FROM record r JOIN session s ON s.n = r.session JOIN record m ON m.k = r.parent
  WHERE r.kind = 2 AND r.data IS NOT NULL;
CREATE VIEW todos AS SELECT s.id AS session, r.seq, r.data
  FROM record r JOIN session s ON s.n = r.session WHERE r.kind = 5 AND r.data IS NOT NULL;
"""

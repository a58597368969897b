-- Give rows of another server's transactions to this one. Locked, so that no commit comes between.
LOCK TABLE {s}.session, {s}.record IN SHARE ROW EXCLUSIVE MODE;
UPDATE {s}.session SET xid = pg_current_xact_id(),
  born = CASE WHEN born >= pg_snapshot_xmax(pg_current_snapshot()) THEN pg_current_xact_id() ELSE born END
  WHERE xid >= pg_snapshot_xmax(pg_current_snapshot());
UPDATE {s}.record SET xid = pg_current_xact_id(),
  born = CASE WHEN born >= pg_snapshot_xmax(pg_current_snapshot()) THEN pg_current_xact_id() ELSE born END
  WHERE xid >= pg_snapshot_xmax(pg_current_snapshot());
UPDATE {s}.store SET value = '0' WHERE key = 'horizon';

-- Whether the store holds numbers of transactions that this server has not given out yet.
SELECT greatest(
  (SELECT xid FROM {s}.session ORDER BY xid DESC LIMIT 1), (SELECT xid FROM {s}.record ORDER BY xid DESC LIMIT 1),
  (SELECT value::xid8 FROM {s}.store WHERE key = 'horizon')) >= pg_snapshot_xmax(pg_current_snapshot())

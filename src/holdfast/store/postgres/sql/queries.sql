-- Reading, by name. {s} is the store's schema.

-- name: session
SELECT s.n, s.id, s.position, s.seq, s.head, s.top, s.data, s.updated, s.fence, o.id AS owner, o.data AS owner_data
FROM {s}.session s LEFT JOIN {s}.owner o ON o.id = s.owner AND NOT o.dead AND o.deadline >= {f}now_ms($2)
WHERE s.id = $1 AND s.scope = 0 AND s.data IS NOT NULL

-- name: sessions
SELECT s.n, s.id, s.position, s.seq, s.head, s.top, s.data, s.updated, s.fence, o.id AS owner, o.data AS owner_data
FROM {s}.session s LEFT JOIN {s}.owner o ON o.id = s.owner AND NOT o.dead AND o.deadline >= {f}now_ms($1)
WHERE s.scope = 0 AND s.data IS NOT NULL AND s.updated IS NOT NULL

-- name: record
SELECT s.id AS session, r.kind, r.id, p.id AS parent, r.position, r.seq, r.place, r.mark, r.data
FROM {s}.record r JOIN {s}.session s ON s.n = r.session
LEFT JOIN {s}.record p ON p.session = r.session AND p.position = r.parent

-- name: messages
WITH page AS (
  SELECT id, position, seq, place, mark, data FROM {s}.record
  WHERE session = $1 AND kind = 1 AND data IS NOT NULL AND position > $2 AND position < $3
    AND coalesce(place, position) >= $4 {shown}
  ORDER BY position {direction} LIMIT $5)
SELECT m.id, m.position, m.seq, m.place, m.mark, m.data,
  p.id AS part, p.position AS part_position, p.seq AS part_seq, p.place AS part_place, p.mark AS part_mark,
  p.data AS part_data
FROM page m LEFT JOIN {s}.record p ON p.session = $1 AND p.parent = m.position AND p.data IS NOT NULL {parts}
ORDER BY m.position, p.position

-- name: originals
SELECT m.id, m.position, m.seq, m.place, m.mark, m.data,
  p.id AS part, p.position AS part_position, p.seq AS part_seq, p.place AS part_place, p.mark AS part_mark,
  p.data AS part_data
FROM {s}.record m LEFT JOIN {s}.record p ON p.session = m.session AND p.parent = m.position AND p.data IS NOT NULL
WHERE m.session = (SELECT n FROM {s}.session WHERE id = $1) AND m.kind = 1 AND m.data IS NOT NULL
  AND m.position < $2 AND coalesce(m.place, m.position) < $2
ORDER BY m.position, p.position

-- name: message_exists
SELECT EXISTS (SELECT 1 FROM {s}.record WHERE session = $1 AND kind = 1 AND data IS NOT NULL
  AND position > $2 AND position < $3 AND coalesce(place, position) >= $4 {shown})

-- name: holders
-- A subquery for each session: a join could be planned as a walk over all records.
SELECT s.id FROM {s}.session s WHERE s.data IS NOT NULL AND (
  SELECT true FROM {s}.record r WHERE r.session = s.n AND r.id = $1 AND r.kind = $2 AND r.data IS NOT NULL)
ORDER BY s.n;

-- name: session_number
SELECT n, CASE WHEN strpos(data, '"revert"') > 0 THEN data END AS data
FROM {s}.session WHERE id = $1 AND scope = 0 AND data IS NOT NULL

-- name: head
-- Which tables these are: a dump that was restored, or a database that took the other one's name, has others.
-- And the newest transaction that the feed tells of, or told of before its tombstones went.
SELECT pg_current_snapshot()::text, {f}history(), {f}place(), (SELECT value FROM {s}.store WHERE key = 'incarnation'),
  (SELECT value FROM {s}.store WHERE key = 'horizon'), greatest(
  (SELECT xid FROM {s}.session ORDER BY xid DESC LIMIT 1), (SELECT xid FROM {s}.record ORDER BY xid DESC LIMIT 1),
  (SELECT value::xid8 FROM {s}.store WHERE key = 'horizon'))::text

-- name: of_session
JOIN {s}.session s ON s.n = r.session

-- A page of the feed is a statement of three: where to look (gone, changed, everything, or the keys that an earlier
-- look found), which keys come next (page), and their rows (gone_rows, rows).
-- $1 after, $2 key session, $3 key position, $4 limit, $5 until, $6 perhaps the session.

-- name: gone
-- Tombstones that a cursor has not seen: those of transactions that began after it, and of the few that were under
-- way then. Both are found by number, so that a transaction which stays open for long makes no look longer.
WITH changed AS MATERIALIZED (
  SELECT s.n, 0::bigint AS position, NULL::xid8 AS born FROM {s}.session s
  WHERE s.data IS NULL AND s.xid >= pg_snapshot_xmax($1::text::pg_snapshot) {session}
  UNION ALL
  SELECT r.session, r.position, NULL::xid8 FROM {s}.record r {of_session}
  WHERE r.data IS NULL AND r.xid >= pg_snapshot_xmax($1::text::pg_snapshot) {session} {under_way}),

-- name: gone_under_way
  UNION ALL
  SELECT s.n, 0::bigint, NULL::xid8 FROM {s}.session s
  WHERE s.data IS NULL AND s.xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot))) {session}
  UNION ALL
  SELECT r.session, r.position, NULL::xid8 FROM {s}.record r {of_session}
  WHERE r.data IS NULL AND r.xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot))) {session}

-- name: changed
-- What lives, changed after $1 and was there at $5 (else it comes whole in the next batch, parents and all).
WITH changed AS MATERIALIZED (
  SELECT s.n, 0::bigint AS position, s.born FROM {s}.session s
  WHERE s.scope = 0 AND s.data IS NOT NULL AND s.xid >= pg_snapshot_xmax($1::text::pg_snapshot) {session}
  UNION ALL
  SELECT r.session, r.position, r.born FROM {s}.record r {of_session}
  WHERE r.data IS NOT NULL AND r.xid >= pg_snapshot_xmax($1::text::pg_snapshot) {session} {under_way}),

-- name: changed_under_way
  UNION ALL
  SELECT s.n, 0::bigint, s.born FROM {s}.session s
  WHERE s.scope = 0 AND s.data IS NOT NULL
    AND s.xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot))) {session}
  UNION ALL
  SELECT r.session, r.position, r.born FROM {s}.record r {of_session}
  WHERE r.data IS NOT NULL AND r.xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot))) {session}

-- name: page
page AS (
  SELECT n, position FROM changed
  WHERE (n, position) > ($2::bigint, $3::bigint)
    AND (born IS NULL OR pg_visible_in_snapshot(born, $5::text::pg_snapshot))
  ORDER BY n, position LIMIT $4)

-- name: everything
-- The same from nothing: a walk along the keys.
WITH page AS (
  SELECT n, position FROM (
    (SELECT s.n, 0::bigint AS position FROM {s}.session s
     WHERE s.scope = 0 AND s.data IS NOT NULL AND (s.n, 0::bigint) > ($2::bigint, $3::bigint)
       AND s.n >= $2 AND pg_visible_in_snapshot(s.born, $5::text::pg_snapshot) {session}
     ORDER BY s.n LIMIT $4)
    UNION ALL
    (SELECT r.session, r.position FROM {s}.record r {of_session}
     WHERE r.data IS NOT NULL AND (r.session, r.position) > ($2::bigint, $3::bigint)
       AND pg_visible_in_snapshot(r.born, $5::text::pg_snapshot) {session}
     ORDER BY r.session, r.position LIMIT $4)) AS keys
  ORDER BY n, position LIMIT $4)

-- name: known
-- Keys that were found before: $2 sessions, $3 positions.
WITH page AS (SELECT n, position FROM unnest($2::bigint[], $3::bigint[]) AS k(n, position))

-- name: keys
SELECT array_agg(n ORDER BY n, position), array_agg(position ORDER BY n, position) FROM page

-- name: gone_rows
SELECT page.n, page.position AS at_position, s.id AS session, coalesce(r.kind, 0::smallint) AS kind,
  coalesce(r.id, s.id) AS id, p.id AS parent, coalesce(r.position, s.position) AS position,
  coalesce(r.seq, s.seq) AS seq, s.project, s.directory, s.at
FROM page JOIN {s}.session s ON s.n = page.n
LEFT JOIN {s}.record r ON r.session = page.n AND r.position = page.position
LEFT JOIN {s}.record p ON p.session = r.session AND p.position = r.parent
WHERE CASE WHEN page.position = 0 THEN s.data IS NULL ELSE r.id IS NOT NULL AND r.data IS NULL END
  AND $1::text IS NOT NULL
ORDER BY page.n, page.position

-- name: rows
SELECT page.n, page.position AS at_position, s.id AS session,
  NOT pg_visible_in_snapshot(coalesce(r.born, s.born), $1::text::pg_snapshot) AS created,
  CASE WHEN page.position = 0 THEN s.at ELSE r.at END IS NOT NULL AS again,
  coalesce(r.kind, 0::smallint) AS kind, coalesce(r.id, s.id) AS id, p.id AS parent,
  coalesce(r.position, s.position) AS position, coalesce(r.seq, s.seq) AS seq, r.place,
  coalesce(r.mark, 0::smallint) AS mark, CASE WHEN page.position = 0 THEN s.data ELSE r.data END AS data
FROM page JOIN {s}.session s ON s.n = page.n
LEFT JOIN {s}.record r ON r.session = page.n AND r.position = page.position
LEFT JOIN {s}.record p ON p.session = r.session AND p.position = r.parent
WHERE CASE WHEN page.position = 0 THEN s.data ELSE r.data END IS NOT NULL
ORDER BY page.n, page.position

-- name: search
SELECT * FROM (
  SELECT s.id AS session, s.title, NULL::text AS message, NULL::text AS id, 0::smallint AS kind, s.data,
    ts_rank(s.words, q.query, 1) AS rank, s.born, s.n, 0::bigint AS position
  FROM {s}.session s, (SELECT $1::text::tsquery AS query) q
  WHERE s.words @@ q.query AND s.scope = 0 AND s.data IS NOT NULL
    AND ($2::text IS NULL OR s.project = $2) AND ($3::text IS NULL OR s.id = $3)
  UNION ALL
  SELECT s.id, s.title, m.id, r.id, r.kind, r.data, ts_rank(r.words, q.query, 1), r.born, s.n, r.position
  FROM {s}.record r JOIN {s}.session s ON s.n = r.session
  LEFT JOIN {s}.record m ON m.session = r.session AND m.position = r.parent,
  (SELECT $1::text::tsquery AS query) q
  WHERE r.words @@ q.query AND r.data IS NOT NULL
    AND ($2::text IS NULL OR s.project = $2) AND ($3::text IS NULL OR s.id = $3)
) AS found

-- name: owners
SELECT id, data FROM {s}.owner WHERE NOT dead

-- name: deadlines
SELECT id, data, deadline, {f}now_ms($1) AS moment FROM {s}.owner WHERE NOT dead

-- name: examined_owners
SELECT id, data, dead FROM {s}.owner ORDER BY id

-- name: commit_one
SELECT {f}commit_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
  $18, $19, $20, $21, $22, $23, $24)

-- name: commit_group
SELECT numbers, code, message
FROM {f}commit_group($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
  $18, $19, $20, $21, $22)

-- name: erase
SELECT {f}erase($1, $2, $3, $4, $5, $6, $7)

-- name: sweep
SELECT {f}sweep($1, $2)

-- name: register
SELECT {f}register($1, $2, $3, $4, $5)

-- name: renew
SELECT {f}renew($1, $2, $3)

-- name: retire
SELECT {f}retire($1)

-- name: bury
SELECT {f}bury($1, $2, $3, $4)

-- name: claim
SELECT number, holder, holder_data FROM {f}claim($1, $2)

-- name: renumber
SELECT {f}renumber($1, $2, $3)

-- name: settings
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')
UNION ALL SELECT 'history', {f}history()
UNION ALL SELECT 'behind', (pg_snapshot_xmax(w)::text::bigint - pg_snapshot_xmin(w)::text::bigint)::text
  FROM pg_current_snapshot() AS w
UNION ALL SELECT 'oldest', coalesce((SELECT format('prepared as %s in %s', gid, database) FROM pg_prepared_xacts
  ORDER BY prepared LIMIT 1), (SELECT format('process %s in %s', pid, datname) FROM pg_stat_activity
  WHERE backend_xid IS NOT NULL ORDER BY xact_start LIMIT 1), 'of another user')

-- name: free_late
-- Bury an owner whose row cannot be read, if it is late.
WITH late AS (UPDATE {s}.owner SET dead = true WHERE id = $1 AND NOT dead AND deadline < {f}now_ms($2) RETURNING id),
  freed AS (UPDATE {s}.session SET owner = NULL WHERE owner IN (SELECT id FROM late) RETURNING 1)
SELECT count(*) FROM late

-- name: orphans
SELECT r.session, r.position, r.kind, r.seq, r.id FROM {s}.record r
WHERE NOT EXISTS (SELECT 1 FROM {s}.session s WHERE s.n = r.session AND s.data IS NOT NULL)

-- name: session_count
SELECT count(*) FROM {s}.session

-- name: examined_sessions
SELECT n, id, scope, position, seq, head, data, project, directory, path, parent, slug, title, placement, updated,
  archived, agent_run, parent IS NULL OR EXISTS (
  SELECT 1 FROM {s}.session p WHERE p.id = s.parent AND p.data IS NOT NULL) AS rooted
FROM {s}.session s WHERE n > $1 ORDER BY n LIMIT 2000

-- name: examined_records
SELECT r.session, r.position, r.kind, r.seq, r.id, r.data, p.id AS message,
  p.kind = 1 AND p.data IS NOT NULL AND p.position < r.position AS fits
FROM {s}.record r LEFT JOIN {s}.record p ON p.session = r.session AND p.position = r.parent
WHERE r.session = $1 AND r.position > $2 ORDER BY r.position LIMIT 2000

-- name: mend_head
UPDATE {s}.session SET head = greatest(head, $2) WHERE n = $1

-- name: head_of
SELECT head FROM {s}.session WHERE n = $1

-- name: quarantine
SELECT {f}quarantine_record($1, $2, $3, $4, $5, $6, $7)

-- name: mend_session
SELECT {f}mend_session($1, $2, $3, $4, $5)

-- Owners, claims and erasures. `given_ms` is NULL where the database's own clock counts.

CREATE OR REPLACE FUNCTION {f}register(who text, body text, places text[], lease_ms bigint, given_ms bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {f}durable();
  INSERT INTO {s}.owner(id, data, placements, deadline)
    VALUES (who, body, places, {f}now_ms(given_ms) + lease_ms) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'owner % is registered already; register under an id of your own', who USING ERRCODE = 'HF002';
  END IF;
END $$;

-- A renewal need not survive a power cut: after one, nobody of before is alive.
CREATE OR REPLACE FUNCTION {f}renew(who text, lease_ms bigint, given_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE {s}.owner SET deadline = {f}now_ms(given_ms) + lease_ms WHERE id = who AND NOT dead;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION {f}free_claims(who text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM {s}.session WHERE owner = ANY(who) ORDER BY id FOR NO KEY UPDATE;
  UPDATE {s}.session SET owner = NULL WHERE owner = ANY(who);
END $$;

CREATE OR REPLACE FUNCTION {f}retire(who text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {f}durable();
  DELETE FROM {s}.owner WHERE id = who;
  PERFORM {f}free_claims(ARRAY[who]);
END $$;

-- Declare dead who is known to be gone, and who was silent for long enough, if its deadline is still the one that was
-- seen then. The owner's row lock orders this against a renewal.
CREATE OR REPLACE FUNCTION {f}bury(me text, gone text[], silent text[], seen bigint[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  buried text[];
BEGIN
  PERFORM {f}durable();
  PERFORM 1 FROM {s}.owner WHERE NOT dead AND id = ANY(gone || silent) ORDER BY id FOR UPDATE;
  WITH late AS (
    UPDATE {s}.owner SET dead = true
    WHERE NOT dead AND id <> me AND (id = ANY(gone) OR deadline = seen[array_position(silent, id)]) RETURNING id)
  SELECT coalesce(array_agg(id ORDER BY id), '{{}}') INTO buried FROM late;
  IF cardinality(buried) > 0 THEN
    PERFORM {f}free_claims(buried);
  END IF;
  RETURN buried;
END $$;

-- A fence number when granted; else the living holder, so that the caller may look whether it is gone.
CREATE OR REPLACE FUNCTION {f}claim(name text, me text) RETURNS TABLE(number bigint, holder text, holder_data text)
LANGUAGE plpgsql AS $$
DECLARE
  mine record;
  s record;
BEGIN
  PERFORM {f}durable();
  SELECT dead, placements INTO mine FROM {s}.owner WHERE id = me FOR SHARE;
  IF NOT FOUND OR mine.dead THEN
    RAISE EXCEPTION 'owner % is not registered or was declared dead; register anew', me USING ERRCODE = 'HF003';
  END IF;
  SELECT owner, fence, placement INTO s FROM {s}.session
    WHERE id = name AND scope = 0 AND data IS NOT NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'session % does not exist', name USING ERRCODE = 'HF001';
  END IF;
  IF s.placement IS NOT NULL AND NOT s.placement = ANY(mine.placements) THEN
    RAISE EXCEPTION 'session % runs at placement %, which this process does not offer', name, s.placement
      USING ERRCODE = 'HF004';
  END IF;
  SELECT o.id, o.data INTO holder, holder_data FROM {s}.owner o WHERE o.id = s.owner AND NOT o.dead;
  IF holder IS NULL THEN
    number := s.fence + 1;
    UPDATE {s}.session SET owner = me, fence = number WHERE id = name;
  END IF;
  RETURN NEXT;
END $$;

-- Another number for a claim that is held. A number above the known one is an earlier answer that was lost.
CREATE OR REPLACE FUNCTION {f}renumber(name text, me text, known bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  number bigint;
BEGIN
  PERFORM {f}durable();
  UPDATE {s}.session SET fence = fence + 1 WHERE id = name AND owner = me AND fence >= known RETURNING fence INTO number;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'session % was taken over or given back (fence %); stop running it', name, known
      USING ERRCODE = 'HF003';
  END IF;
  RETURN number;
END $$;

-- Remove a session and everything below it; answers the ids, the deepest first.
CREATE OR REPLACE FUNCTION {f}erase(
  name text, f_session text, f_owner text, f_number bigint, gone text[], given_ms bigint, idle_since_ms bigint
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {f}now_ms(given_ms);
  me xid8 := pg_current_xact_id();
  locked text[] := '{{}}';
  tree text[];
  busy text;
  used text;
BEGIN
  PERFORM {f}durable();
  -- The whole tree is locked at once, in the order of all. A child is put under its parent's row lock, so none can slip
  -- in below what is locked; one that came before the lock is locked in another round (out of order: a deadlock of the
  -- two is undone by the server, and the caller repeats).
  LOOP
    WITH RECURSIVE below(id, depth) AS (
      SELECT s.id, 0 FROM {s}.session s WHERE s.id = name AND s.scope = 0 AND s.data IS NOT NULL
      UNION ALL SELECT c.id, b.depth + 1 FROM {s}.session c JOIN below b ON c.parent = b.id WHERE c.data IS NOT NULL)
    SELECT array_agg(id ORDER BY depth DESC, id) INTO tree FROM below;
    IF tree IS NULL THEN
      RAISE EXCEPTION 'session % does not exist', name USING ERRCODE = 'HF001';
    END IF;
    EXIT WHEN tree <@ locked;
    PERFORM 1 FROM {s}.session WHERE id = ANY(tree || f_session) ORDER BY id FOR NO KEY UPDATE;
    locked := tree;
  END LOOP;
  IF f_session IS NOT NULL THEN
    PERFORM {f}check_fence(f_session, f_owner, f_number);
  END IF;
  SELECT id INTO busy FROM {s}.session WHERE id = ANY(tree) AND owner IS NOT NULL
    AND owner IS DISTINCT FROM f_owner AND {f}living(owner, moment, gone) LIMIT 1;
  IF busy IS NOT NULL THEN
    RAISE EXCEPTION 'session % is busy: it runs in another process; interrupt it first', busy USING ERRCODE = 'HF004';
  END IF;
  SELECT id INTO used FROM {s}.session WHERE id = ANY(tree) AND updated > idle_since_ms LIMIT 1;
  IF used IS NOT NULL THEN
    RAISE EXCEPTION 'session % was used since; it stays, and so does %', used, name USING ERRCODE = 'HF002';
  END IF;
  DELETE FROM {s}.record WHERE session IN (SELECT n FROM {s}.session WHERE id = ANY(tree));
  UPDATE {s}.session SET data = NULL, words = NULL, seq = head + 1, head = head + 1, top = '', owner = NULL,
    xid = me, at = moment, path = NULL, slug = NULL, title = NULL, folded = NULL, placement = NULL, parent = NULL,
    updated = NULL, archived = NULL, agent_run = NULL WHERE id = ANY(tree);
  RETURN tree;
END $$;

-- Forget tombstones of before a moment; cursors that have not seen all of them end in a resync.
CREATE OR REPLACE FUNCTION {f}sweep(term_ms bigint, given_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  before_ms bigint := {f}now_ms(given_ms) - term_ms;
  newest xid8;
BEGIN
  PERFORM {f}durable();
  WITH swept AS (
    DELETE FROM {s}.record WHERE data IS NULL AND at < before_ms RETURNING xid),
  forgotten AS (
    DELETE FROM {s}.session WHERE data IS NULL AND at < before_ms RETURNING xid)
  SELECT max(xid) INTO newest FROM (SELECT xid FROM swept UNION ALL SELECT xid FROM forgotten) AS every;
  IF newest IS NOT NULL THEN
    UPDATE {s}.store SET value = newest::text WHERE key = 'horizon' AND value::xid8 < newest;
  END IF;
  DELETE FROM {s}.owner WHERE dead AND deadline < before_ms;
END $$;

-- Which history of the server the numbers of its transactions belong to: a promoted standby gives some of them
-- out again. Where it cannot be asked (a standby, missing rights) the answer says so.
CREATE OR REPLACE FUNCTION {f}history() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  system text := 'unknown';
  timeline text := 'unknown';
BEGIN
  BEGIN
    SELECT system_identifier::text INTO system FROM pg_control_system();
  EXCEPTION WHEN insufficient_privilege THEN NULL;
  END;
  BEGIN
    IF pg_is_in_recovery() THEN
      SELECT lpad(to_hex(timeline_id), 8, '0') INTO timeline FROM pg_control_checkpoint();
    ELSE
      timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
    END IF;
  EXCEPTION WHEN insufficient_privilege OR object_not_in_prerequisite_state THEN NULL;
  END;
  RETURN system || '/' || timeline;
END $$;

-- Which tables of which database these are. A dump that is restored makes others, or fills them anew (then the row that
-- has the incarnation is another transaction's); a database that takes the name of another has another number.
CREATE OR REPLACE FUNCTION {f}place() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT concat_ws('/', (SELECT oid FROM pg_database WHERE datname = current_database()),
    '{s}.store'::regclass::oid, '{s}.session'::regclass::oid, '{s}.record'::regclass::oid,
    pg_relation_filenode('{s}.session'), pg_relation_filenode('{s}.record'),
    (SELECT xmin FROM {s}.store WHERE key = 'incarnation'))
$$;

-- Set a damaged record aside, a message with its parts, and leave a tombstone. Answers whether it was still as it was
-- seen: a commit may have replaced it meanwhile.
CREATE OR REPLACE FUNCTION {f}quarantine_record(
  s_n bigint, at_position bigint, seen bigint, name text, kinds text[], why text, given_ms bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {f}now_ms(given_ms);
  live boolean;
BEGIN
  PERFORM {f}durable();
  SELECT data IS NOT NULL INTO live FROM {s}.session WHERE n = s_n FOR NO KEY UPDATE;
  PERFORM 1 FROM {s}.record WHERE session = s_n AND position = at_position AND seq = seen FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO {s}.quarantine SELECT moment, why, name, kinds[kind + 1], id, data FROM {s}.record
    WHERE session = s_n AND (position = at_position OR parent = at_position AND live) AND data IS NOT NULL
    ORDER BY position;
  IF live IS NOT TRUE THEN
    DELETE FROM {s}.record WHERE session = s_n AND position = at_position;
    RETURN true;
  END IF;
  DELETE FROM {s}.record WHERE session = s_n AND parent = at_position;
  UPDATE {s}.session SET head = greatest(head, seen) + 1 WHERE n = s_n;
  UPDATE {s}.record SET data = NULL, words = NULL, mark = 0, seq = (SELECT head FROM {s}.session WHERE n = s_n),
    at = moment, xid = pg_current_xact_id() WHERE session = s_n AND position = at_position;
  RETURN true;
END $$;

-- Give a session whose own record is damaged another one; the damaged one is set aside.
CREATE OR REPLACE FUNCTION {f}mend_session(s_n bigint, seen bigint, body text, why text, given_ms bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {f}now_ms(given_ms);
BEGIN
  PERFORM {f}durable();
  PERFORM 1 FROM {s}.session WHERE n = s_n AND seq = seen AND data IS NOT NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO {s}.quarantine SELECT moment, why, id, 'session', id, data FROM {s}.session WHERE n = s_n;
  UPDATE {s}.session SET data = body, seq = greatest(head, seq) + 1, head = greatest(head, seq) + 1,
    updated = coalesce(updated, moment), xid = pg_current_xact_id() WHERE n = s_n;
  RETURN true;
END $$;

-- Owners, claims and erasures. `given_ms` is NULL where the database's own clock counts.

CREATE OR REPLACE FUNCTION {s}.register(who text, body text, places text[], lease_ms bigint, given_ms bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {s}.durable();
  INSERT INTO {s}.owner(id, data, placements, deadline) VALUES (who, body, places, {s}.now_ms(given_ms) + lease_ms);
END $$;

-- A renewal need not survive a power cut: after one, nobody of before is alive.
CREATE OR REPLACE FUNCTION {s}.renew(who text, lease_ms bigint, given_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE {s}.owner SET deadline = {s}.now_ms(given_ms) + lease_ms WHERE id = who AND NOT dead;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION {s}.free_claims(who text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM {s}.session WHERE owner = ANY(who) ORDER BY id FOR NO KEY UPDATE;
  UPDATE {s}.session SET owner = NULL WHERE owner = ANY(who);
END $$;

CREATE OR REPLACE FUNCTION {s}.retire(who text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {s}.durable();
  DELETE FROM {s}.owner WHERE id = who;
  PERFORM {s}.free_claims(ARRAY[who]);
END $$;

-- Declare dead who is known to be gone and, if `patient`, who missed its deadline. The owner's row lock orders
-- this against a renewal.
CREATE OR REPLACE FUNCTION {s}.bury(me text, gone text[], patient boolean, given_ms bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {s}.now_ms(given_ms);
  buried text[];
BEGIN
  PERFORM {s}.durable();
  PERFORM 1 FROM {s}.owner WHERE NOT dead AND (id = ANY(gone) OR patient AND deadline < moment) ORDER BY id FOR UPDATE;
  WITH late AS (
    UPDATE {s}.owner SET dead = true
    WHERE NOT dead AND id <> me AND (id = ANY(gone) OR patient AND deadline < moment) RETURNING id)
  SELECT coalesce(array_agg(id ORDER BY id), '{{}}') INTO buried FROM late;
  IF cardinality(buried) > 0 THEN
    PERFORM {s}.free_claims(buried);
  END IF;
  RETURN buried;
END $$;

-- A fence number when granted; else the living holder, so that the caller may look whether it is gone.
CREATE OR REPLACE FUNCTION {s}.claim(name text, me text) RETURNS TABLE(number bigint, holder text, holder_data text)
LANGUAGE plpgsql AS $$
DECLARE
  mine record;
  s record;
BEGIN
  PERFORM {s}.durable();
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

-- Remove a session and everything below it; answers the ids, the deepest first.
CREATE OR REPLACE FUNCTION {s}.erase(
  name text, f_session text, f_owner text, f_number bigint, gone text[], given_ms bigint
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {s}.now_ms(given_ms);
  me xid8 := pg_current_xact_id();
  tree text[] := ARRAY[name];
  grown text[];
  busy text;
BEGIN
  PERFORM {s}.durable();
  -- A child is put under its parent's row lock, so once a level is locked no child can slip in below it.
  LOOP
    PERFORM 1 FROM {s}.session WHERE id = ANY(tree || f_session) ORDER BY id FOR NO KEY UPDATE;
    WITH RECURSIVE below(id, depth) AS (
      SELECT s.id, 0 FROM {s}.session s WHERE s.id = name AND s.scope = 0 AND s.data IS NOT NULL
      UNION ALL SELECT c.id, b.depth + 1 FROM {s}.session c JOIN below b ON c.parent = b.id WHERE c.data IS NOT NULL)
    SELECT array_agg(id ORDER BY depth DESC, id) INTO grown FROM below;
    IF grown IS NULL THEN
      RAISE EXCEPTION 'session % does not exist', name USING ERRCODE = 'HF001';
    END IF;
    EXIT WHEN grown <@ tree;
    tree := grown;
  END LOOP;
  IF f_session IS NOT NULL THEN
    PERFORM {s}.check_fence(f_session, f_owner, f_number);
  END IF;
  SELECT id INTO busy FROM {s}.session WHERE id = ANY(tree) AND owner IS NOT NULL
    AND owner IS DISTINCT FROM f_owner AND {s}.living(owner, moment, gone) LIMIT 1;
  IF busy IS NOT NULL THEN
    RAISE EXCEPTION 'session % is busy: it runs in another process; interrupt it first', busy USING ERRCODE = 'HF004';
  END IF;
  DELETE FROM {s}.record WHERE session IN (SELECT n FROM {s}.session WHERE id = ANY(tree));
  UPDATE {s}.session SET data = NULL, words = NULL, seq = head + 1, head = head + 1, top = '', owner = NULL,
    xid = me, at = moment, path = NULL, slug = NULL, title = NULL, folded = NULL, placement = NULL, parent = NULL,
    updated = NULL, archived = NULL WHERE id = ANY(tree);
  RETURN grown;
END $$;

-- Forget tombstones of before a moment; cursors that have not seen all of them end in a resync.
CREATE OR REPLACE FUNCTION {s}.sweep(term_ms bigint, given_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  before_ms bigint := {s}.now_ms(given_ms) - term_ms;
  newest xid8;
BEGIN
  PERFORM {s}.durable();
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
CREATE OR REPLACE FUNCTION {s}.history() RETURNS text LANGUAGE plpgsql AS $$
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

-- Set a damaged record aside and leave a tombstone.
CREATE OR REPLACE FUNCTION {s}.quarantine_record(
  s_n bigint, at_position bigint, name text, kind_name text, why text, given_ms bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {s}.now_ms(given_ms);
  number bigint;
BEGIN
  PERFORM {s}.durable();
  INSERT INTO {s}.quarantine SELECT moment, why, name, kind_name, id, data FROM {s}.record
    WHERE session = s_n AND position = at_position;
  UPDATE {s}.session SET head = head + 1 WHERE n = s_n RETURNING head INTO number;
  IF NOT FOUND THEN
    DELETE FROM {s}.record WHERE session = s_n AND position = at_position;
    RETURN;
  END IF;
  DELETE FROM {s}.record WHERE session = s_n AND parent = at_position;
  UPDATE {s}.record SET data = NULL, words = NULL, mark = 0, seq = number, at = moment, xid = pg_current_xact_id()
    WHERE session = s_n AND position = at_position;
END $$;
